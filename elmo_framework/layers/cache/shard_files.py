"""Shards of layers on the disk, with a checksum for each block of their vectors.

A folder contains `entries.npy`, `vectors.bin` and `checksums.npy`: the CRC-32 of the first file,
then that of each block of the second. The entries are verified when a shard is opened, a block when
it is first read.
"""

from __future__ import annotations

import io
from pathlib import Path
from tokenize import TokenError
from typing import Any
from zlib import crc32

import numpy as np
import torch
from numpy.typing import NDArray

from elmo_framework.errors import DataError
from elmo_framework.layers.cache.shards import ENTRY, Shard
from elmo_framework.layers.cache.verified_blocks import (
    CHECKSUM,
    VerifiedBlocks,
    checksums_of,
    num_blocks,
)

_DAMAGE = (OSError, ValueError, EOFError, SyntaxError, TokenError)
"""What NumPy raises for damaged files; the last two are of the header, which is Python."""

_ENTRIES, _VECTORS, _CHECKSUMS = "entries.npy", "vectors.bin", "checksums.npy"


def write_shard(shard: Shard, folder: Path) -> None:
    """Write a shard into a new folder."""
    folder.mkdir()
    entries = io.BytesIO()
    np.save(entries, shard.entries)
    vectors = shard.vectors.numpy().data.cast("B")
    checksums = [crc32(entries.getbuffer()), *checksums_of(vectors)]
    np.save(folder / _CHECKSUMS, np.array(checksums, CHECKSUM))
    (folder / _ENTRIES).write_bytes(entries.getbuffer())
    (folder / _VECTORS).write_bytes(vectors)


def open_shard(folder: Path, *, num_layers: int, dim: int, dtype: str) -> Shard:
    """Map a shard into memory; its blocks are not verified yet.

    Args:
        folder: of its files.
        num_layers: of each sentence.
        dim: the dimension of a layer.
        dtype: of the numbers, as NumPy calls it.

    Raises:
        DataError: a file is missing, or the entries are not as they were written.
    """
    checksums = _read_checksums(folder)
    entries = read_entries(folder, checksum=int(checksums[0]))
    path = folder / _VECTORS
    num_vectors = int(entries["num_steps"].sum()) * num_layers
    num_bytes = num_vectors * dim * np.dtype(dtype).itemsize
    if not path.is_file() or path.stat().st_size != num_bytes:
        raise DataError(f"{_VECTORS} has not the {num_bytes:,} bytes of its sentences")
    if len(checksums) - 1 != num_blocks(num_bytes):
        raise DataError(f"{_CHECKSUMS} is that of another file")
    # Copy on write: torch wants arrays that can be written, and the file must stay as it is.
    vectors = np.memmap(path, dtype=dtype, mode="c")
    blocks = VerifiedBlocks(path, vectors.data.cast("B"), checksums[1:])
    return Shard(entries, torch.from_numpy(vectors.reshape(-1, dim)), blocks)


def read_entries(folder: Path, *, checksum: int | None = None) -> NDArray[Any]:
    """Return the entries of a shard.

    Args:
        folder: of its files.
        checksum: what the entries must have; None for any.

    Raises:
        DataError: they are missing, or not as they were written.
    """
    try:
        content = (folder / _ENTRIES).read_bytes()
        if checksum not in (None, crc32(content)):
            raise DataError(f"{_ENTRIES} has changed")
        entries: NDArray[Any] = np.load(io.BytesIO(content), allow_pickle=False)
    except _DAMAGE as error:
        raise DataError(f"{_ENTRIES} cannot be read") from error
    if entries.dtype != ENTRY or not len(entries):
        raise DataError(f"{_ENTRIES} holds no sentences")
    return entries


def _read_checksums(folder: Path) -> NDArray[np.uint32]:
    path = folder / _CHECKSUMS
    if not path.exists():
        raise DataError("an earlier version wrote it without checksums")
    try:
        checksums: NDArray[np.uint32] = np.load(path, allow_pickle=False)
    except _DAMAGE as error:
        raise DataError(f"{_CHECKSUMS} cannot be read") from error
    if checksums.dtype != CHECKSUM or checksums.ndim != 1 or not len(checksums):
        raise DataError(f"{_CHECKSUMS} holds no checksums")
    return checksums
