"""Functions in C that are compiled when they are first used.

With a C compiler at hand that takes half a second, once for a machine; without one, or on another
device or type, PyTorch's own operations compute the same.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

from elmo_framework.nn.compiler import CompilerError, compiled_file

_loaders: list[Callable[[], ctypes.CDLL | None]] = []
_errors: dict[str, str] = {}
"""Why a source has no library, by its name."""


def is_served(*tensors: Tensor) -> bool:
    """Tell whether compiled functions can read the numbers of these tensors as they lie."""
    return all(
        t.device.type == "cpu" and t.dtype == torch.float32 and t.is_contiguous() for t in tensors
    )


def library(
    source: Path, *, fast_math: bool, functions: Mapping[str, Sequence[type]]
) -> Callable[[], ctypes.CDLL | None]:
    """Return what gives the functions of a source; None where they cannot be compiled.

    Args:
        source: a file in C; it may include headers (`.h`) that stand beside it.
        fast_math: whether sums may be arranged in another order, and the like.
        functions: the types of their arguments, by name; they return nothing.
    """

    @cache
    def load() -> ctypes.CDLL | None:
        try:
            loaded = ctypes.CDLL(str(compiled_file(source, fast_math=fast_math)))
        except (CompilerError, OSError) as error:
            _errors[source.name] = str(error)
            return None
        for name, types in functions.items():
            function = getattr(loaded, name)
            function.argtypes, function.restype = types, None
        return loaded

    _loaders.append(load)
    return load


def slow_path_reason() -> str | None:
    """Return why PyTorch computes what compiled functions would; None where it need not.

    All sources that the imported modules name are compiled, if they have not been.
    """
    for load in _loaders:
        load()
    return next(iter(_errors.values()), None)
