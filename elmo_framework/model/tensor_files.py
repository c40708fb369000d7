"""Tensors in files of the safetensors format."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from safetensors.torch import save as to_bytes
from torch import Tensor

from elmo_framework.common.errors import DataError
from elmo_framework.common.files import write_bytes


def save_tensors(
    tensors: Mapping[str, Tensor], path: Path, *, dtype: torch.dtype | None = None
) -> None:
    """Write tensors by their names; the file is replaced at once.

    Tensors that share their numbers, as tied weights do, are each written whole.

    Args:
        tensors: on any device.
        path: of the file.
        dtype: that they are written in; their own unless given.

    Raises:
        OSError: the disk is full, or the like; the library's own writing says so less plainly.
    """
    written: dict[str, Tensor] = {}
    seen = set[int]()
    for name, tensor in tensors.items():
        held = tensor.detach().to("cpu", dtype).contiguous()
        storage = held.untyped_storage().data_ptr()
        written[name] = held.clone() if storage in seen else held
        seen.add(storage)
    write_bytes(path, to_bytes(written))


def load_tensors(path: Path) -> dict[str, Tensor]:
    """Read all tensors of a file.

    Raises:
        DataError: it is missing or damaged.
    """
    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise DataError(f"no tensors can be read: {error}", path=path) from error
