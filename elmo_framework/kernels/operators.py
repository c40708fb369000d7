"""Operators that are one kernel on a GPU, or few: compiled by Triton where it works.

PyTorch's CUDA builds include Triton. Elsewhere an operator is computed by its plain function, and
so is float64, which the kernels do not have.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

_LOG = logging.getLogger(__name__)
_NAMESPACE = "elmo_framework"
_LIBRARY = torch.library.Library(_NAMESPACE, "DEF")  # type: ignore[no-untyped-call]

PLAIN: dict[str, Callable[..., Any]] = {}
"""The plain function of each operator, by its name."""


def operator(
    schema: str,
    plain: Callable[..., Any],
    kernels: str = "triton_kernels",
    *,
    has_kernel: Callable[..., bool] = lambda *_: True,
) -> Callable[..., Any]:
    """Register an operator of PyTorch; return what calls it.

    Args:
        schema: name, arguments and results, as PyTorch writes them.
        plain: computes the operator from PyTorch's operations.
        kernels: the module next to this one whose function of the same name launches its kernels.
        has_kernel: whether they can compute it for some arguments.
    """
    name = schema.partition("(")[0]
    PLAIN[name] = plain

    def on_gpu(*arguments: Any) -> Any:
        if not has_kernel(*arguments):
            return plain(*arguments)
        return choose(plain, kernels, name, arguments)(*arguments)

    _LIBRARY.define(schema)  # type: ignore[no-untyped-call]
    _LIBRARY.impl(name, plain, "CompositeExplicitAutograd")  # type: ignore[no-untyped-call]
    _LIBRARY.impl(name, on_gpu, "CUDA")  # type: ignore[no-untyped-call]
    function: Callable[..., Any] = getattr(getattr(torch.ops, _NAMESPACE), name)
    return function


def choose(
    plain: Callable[..., Any], kernels: str, name: str, arguments: tuple[Any, ...]
) -> Callable[..., Any]:
    """Return the function that computes an operator on a GPU for some arguments."""
    lists = (each if isinstance(each, list) else [each] for each in arguments)
    tensors = (each for items in lists for each in items if isinstance(each, Tensor))
    if any(tensor.dtype == torch.float64 for tensor in tensors) or not has_triton():
        return plain
    function: Callable[..., Any] = getattr(import_module(f"{__package__}.{kernels}"), name)
    return function


@cache
def has_triton() -> bool:
    """Return whether Triton is installed and can compile kernels.

    It compiles the launcher of a kernel with the C compiler of the machine, which may have none.
    """
    if find_spec("triton") is None:
        return False
    try:
        import_module(f"{__package__}.triton_kernels").probe()
    except Exception as error:  # noqa: BLE001 - of Triton, of the C compiler, of the driver
        reason = str(error).strip().partition("\n")[0]
        _LOG.warning("Triton cannot compile kernels here, which is slower: %s", reason)
        return False
    return True
