"""Tensors in files of the safetensors format."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from safetensors.torch import save as to_bytes
from torch import Tensor

from elmo_framework.errors import DataError
from elmo_framework.io.files import write_bytes


def save_tensors(tensors: Mapping[str, Tensor], path: Path) -> None:
    """Write tensors by their names; the file is replaced at once.

    Tensors that share their numbers, as tied weights do, are each written whole.

    Args:
        tensors: on any device.
        path: of the file.

    Raises:
        OSError: the disk is full, or the like; the library's own writing says so less plainly.
    """
    written: dict[str, Tensor] = {}
    seen = set[int]()
    for name, tensor in tensors.items():
        held = tensor.detach().cpu().contiguous()
        storage = held.untyped_storage().data_ptr()
        written[name] = held.clone() if storage in seen else held
        seen.add(storage)
    write_bytes(path, to_bytes(written))


def converted(
    tensors: Mapping[str, Tensor], dtype: torch.dtype, *, path: Path
) -> dict[str, Tensor]:
    """Return tensors in another type.

    Args:
        tensors: by their names.
        dtype: the type.
        path: of the file that they are for.

    Raises:
        DataError: the type cannot hold a number of theirs.
    """
    found = {name: tensor.to(dtype) for name, tensor in tensors.items()}
    for name, held in found.items():
        if (held.isinf() & tensors[name].isfinite()).any():
            message = f"tensor {name!r} holds numbers that {dtype} cannot hold"
            raise DataError(message, path=path)
    return found


def load_tensors(path: Path) -> dict[str, Tensor]:
    """Read all tensors of a file.

    Raises:
        DataError: it is missing or damaged.
    """
    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise DataError(f"no tensors can be read: {error}", path=path) from error
