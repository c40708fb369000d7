"""Operators that are one kernel on a GPU: compiled by Triton where it is installed.

PyTorch's CUDA builds include Triton. Elsewhere an operator is computed by its plain function.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch

_NAMESPACE = "elmo_framework"
_LIBRARY = torch.library.Library(_NAMESPACE, "DEF")  # type: ignore[no-untyped-call]
_KERNELS = "elmo_framework.kernels.triton_kernels"


def operator(schema: str, plain: Callable[..., Any]) -> Callable[..., Any]:
    """Register an operator of PyTorch; return what calls it.

    Args:
        schema: name, arguments and results, as PyTorch writes them. The kernel has the same name
            in `triton_kernels`.
        plain: computes the operator from PyTorch's operations.
    """
    name = schema.partition("(")[0]

    def on_gpu(*arguments: Any) -> Any:
        kernel = plain if not has_triton() else getattr(import_module(_KERNELS), name)
        return kernel(*arguments)

    _LIBRARY.define(schema)  # type: ignore[no-untyped-call]
    _LIBRARY.impl(name, plain, "CompositeExplicitAutograd")  # type: ignore[no-untyped-call]
    _LIBRARY.impl(name, on_gpu, "CUDA")  # type: ignore[no-untyped-call]
    function: Callable[..., Any] = getattr(getattr(torch.ops, _NAMESPACE), name)
    return function


@cache
def has_triton() -> bool:
    """Return whether Triton is installed."""
    return find_spec("triton") is not None
