"""Weights of a model: safetensors files, loading, and building without memory for weights."""

from __future__ import annotations

import pickle
import struct
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, final

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from safetensors.torch import save as to_bytes
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from elmo_framework.errors import DataError, RunError
from elmo_framework.io.files import write_bytes

_MOST_NAMES = 3

_NOT_PLAIN = (
    *(RuntimeError, pickle.UnpicklingError, EOFError, ValueError, LookupError, TypeError),
    *(AttributeError, AssertionError, struct.error),
)
"""What PyTorch's reader raises for other files than it wrote."""


@contextmanager
def without_weights() -> Iterator[None]:
    """Build modules on the device `meta`: their parameters have shapes, but no memory."""
    with torch.device("meta"), _SkipNumbers():
        yield


@final
class _SkipNumbers(TorchFunctionMode):
    """Leaves out what initialization computes on the device `meta`, which has no numbers.

    PyTorch imports its compiler for these functions on `meta`, which takes seconds. All of them
    keep the shape of their first argument.
    """

    _SKIPPED = (nn.init.normal_, Tensor.normal_, Tensor.sign)

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Collection[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        arguments = kwargs or {}
        if func in self._SKIPPED:
            tensor = args[0] if args else arguments["tensor"]
            if tensor.is_meta:
                return tensor
        return func(*args, **arguments)


def load_pickled(file: Path | IO[bytes]) -> Any:
    """Load what `torch.save` wrote, if it is plain tensors; nothing in it is executed.

    Raises:
        ValueError: it is something else. The message begins with a verb.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the protocol of a pickle
            return torch.load(file, map_location="cpu", weights_only=True)
    except _NOT_PLAIN as error:
        # Not PyTorch's message: that advises to load the file without the check.
        message = "is damaged, or has other objects than plain tensors; these are never loaded"
        raise ValueError(message) from error


def save_tensors(tensors: Mapping[str, Tensor], path: Path) -> None:
    """Write tensors by name, from any device; the file is replaced atomically.

    Tensors that share memory, such as tied weights, are each written in full.

    Raises:
        OSError: the file cannot be written, for example on a full disk.
    """
    copies: dict[str, Tensor] = {}
    seen = set[int]()
    for name, tensor in tensors.items():
        copy = tensor.detach().cpu().contiguous()
        storage = copy.untyped_storage().data_ptr()
        copies[name] = copy.clone() if storage in seen else copy
        seen.add(storage)
    # Not `save_file`: its message about a full disk is unclear.
    write_bytes(path, to_bytes(copies))


def converted(
    tensors: Mapping[str, Tensor], dtype: torch.dtype, *, path: Path
) -> dict[str, Tensor]:
    """Return tensors with their floating point numbers in another data type.

    Args:
        tensors: by name.
        dtype: the data type.
        path: of the file that they are for, for messages.

    Raises:
        DataError: a value overflows.
    """
    results = {
        name: tensor.to(dtype) if tensor.is_floating_point() else tensor
        for name, tensor in tensors.items()
    }
    for name, result in results.items():
        if (result.isinf() & tensors[name].isfinite()).any():
            message = f"tensor {name!r} holds numbers that {dtype} cannot hold"
            raise DataError(message, path=path)
    return results


def load_tensors(path: Path) -> dict[str, Tensor]:
    """Read all tensors of a file.

    Raises:
        DataError: the file is missing or damaged.
    """
    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise DataError(f"no tensors can be read: {error}", path=path) from error


def load_weights(model: nn.Module, weights: Mapping[str, Tensor], *, source: str) -> None:
    """Load the parameters and buffers of a model.

    Raises:
        RunError: they belong to another model; names the first differences of each kind.
    """
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        differences = "; ".join(_differences(model.state_dict(), weights)) or str(error)
        raise RunError(
            f"{source}: these weights are of another model than the configuration and the "
            f"vocabulary make: {differences}"
        ) from error


def _differences(model: Mapping[str, Tensor], weights: Mapping[str, Tensor]) -> Iterator[str]:
    shapes = [
        f"{name} {list(weights[name].shape)}, not {list(tensor.shape)}"
        for name, tensor in model.items()
        if name in weights and weights[name].shape != tensor.shape
    ]
    kinds = {
        "missing": [name for name in model if name not in weights],
        "unexpected": [name for name in weights if name not in model],
        "of another shape": shapes,
    }
    for kind, names in kinds.items():
        if names:
            yield f"{kind}: {_first(names)}"


def _first(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
