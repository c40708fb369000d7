"""Functions that torch.compile calls as they are, and that cannot be exported.

They call C by addresses and use oneDNN's own layouts, which no tracer can see.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, NoReturn, ParamSpec, TypeVar

import torch

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")

_COMPILER = "torch._dynamo"
"""Imported by the first use of torch.compile; without it there is nothing to step out of."""


def eager(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Decorate a function that runs outside of torch.compile: the graph breaks around it.

    Being traced for torch.export, torch.onnx or torch.jit, it raises a RuntimeError.
    """
    outside: list[Callable[_Parameters, _Result]] = []

    @wraps(function)
    def call(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        if _is_traced():
            refuse_export()
        if _COMPILER not in sys.modules:
            return function(*args, **kwargs)
        if not outside:
            # As a decorator of `function` this would import the compiler, which takes seconds.
            outside.append(torch.compiler.disable(function))  # type: ignore[no-untyped-call]
        return outside[0](*args, **kwargs)

    return call


def refuse_export(*_: Any) -> NoReturn:
    """Say that a biLM cannot be exported.

    Raises:
        RuntimeError: always.
    """
    raise RuntimeError(
        "a biLM cannot be exported or traced (torch.export, torch.onnx, torch.jit): its products "
        "are compiled code that no tracer can see; run it in Python, where torch.compile works, "
        "and export the layers that follow it"
    )


def _is_traced() -> bool:
    if torch.jit.is_tracing():  # type: ignore[attr-defined, no-untyped-call]
        return True
    # PyTorch 2.6 does not tell of an export.
    return hasattr(torch.compiler, "is_exporting") and torch.compiler.is_exporting()
