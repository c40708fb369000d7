"""Functions that run outside of torch.compile and cannot be exported.

They call C functions with raw pointers and use oneDNN's layouts, which tracers cannot handle.
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
"""Imported by the first use of torch.compile; before that, no graph exists."""


def eager(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Decorate a function so that torch.compile breaks the graph around it.

    Raises:
        RuntimeError: when it is traced for torch.export, torch.onnx or torch.jit.
    """
    outside: list[Callable[_Parameters, _Result]] = []

    @wraps(function)
    def call(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        # PyTorch 2.6 has no `is_exporting`.
        exporting = hasattr(torch.compiler, "is_exporting") and torch.compiler.is_exporting()
        if exporting or torch.jit.is_tracing():  # type: ignore[attr-defined, no-untyped-call]
            refuse_export()
        if _COMPILER not in sys.modules:
            return function(*args, **kwargs)
        if not outside:
            # Not at decoration time: this imports the compiler, which takes seconds.
            outside.append(torch.compiler.disable(function))  # type: ignore[no-untyped-call]
        return outside[0](*args, **kwargs)

    return call


def refuse_export(*_: Any) -> NoReturn:
    """Raise a RuntimeError: a biLM cannot be exported."""
    raise RuntimeError(
        "a biLM cannot be exported or traced (torch.export, torch.onnx, torch.jit): its products "
        "are compiled code that tracers cannot handle; run it in Python, where torch.compile "
        "works, and export the layers that follow it"
    )
