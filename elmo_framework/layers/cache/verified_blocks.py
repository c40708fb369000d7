"""Checksums of the blocks of a file, compared before a block is first read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import final
from zlib import crc32

import numpy as np
import torch
from numpy.typing import NDArray

from elmo_framework.console import ProgressBar
from elmo_framework.errors import DataError

BLOCK_BYTES = 1 << 18
"""Small enough that the first read of a sentence reads little else, large enough for the disk."""

CHECKSUM = np.dtype("<u4")
"""CRC-32: the fastest of the standard library; it is to notice accidents, not forgery."""


_BLOCKS_AT_ONCE, _SECONDS_UNTIL_SHOWN = 64, 2.0


def num_blocks(num_bytes: int) -> int:
    """Return the number of blocks of a file."""
    return -(-num_bytes // BLOCK_BYTES)


def checksums_of(content: memoryview) -> NDArray[np.uint32]:
    """Return the checksum of each block."""
    starts = range(0, len(content), BLOCK_BYTES)
    return np.array([crc32(content[at : at + BLOCK_BYTES]) for at in starts], CHECKSUM)


@final
class VerifiedBlocks:
    """The blocks of a file that is mapped into memory, each verified before it is first read.

    Args:
        path: the file. Only messages name it: by now another one may be in its place.
        content: its bytes, as they are mapped.
        checksums: of its blocks.
    """

    def __init__(self, path: Path, content: memoryview, checksums: NDArray[np.uint32]) -> None:
        self.path, self._content, self._checksums = path, content, checksums
        self._is_verified = np.zeros(len(checksums), dtype=bool)

    def __len__(self) -> int:
        return len(self._checksums)

    def pending(self, begins: NDArray[np.int64], ends: NDArray[np.int64]) -> list[int]:
        """Return the blocks of ranges of bytes that are not verified yet.

        Args:
            begins: the first byte of each range.
            ends: the byte after its last.
        """
        # The running sum counts the ranges that cover a block.
        edges = np.zeros(len(self) + 1, np.int64)
        np.add.at(edges, begins // BLOCK_BYTES, 1)
        np.add.at(edges, (ends - 1) // BLOCK_BYTES + 1, -1)
        blocks: list[int] = np.flatnonzero((edges.cumsum()[:-1] > 0) & ~self._is_verified).tolist()
        return blocks

    def verify(self, blocks: Iterable[int]) -> None:
        """Read blocks and compare their checksums.

        Raises:
            DataError: one is not as it was written.
        """
        for number in blocks:
            start = number * BLOCK_BYTES
            if crc32(self._content[start : start + BLOCK_BYTES]) != self._checksums[number]:
                raise DataError(f"block {number} of {self.path.name} has changed")
            self._is_verified[number] = True


def verify_blocks(pending: Sequence[tuple[VerifiedBlocks, Sequence[int]]]) -> dict[Path, str]:
    """Verify blocks of several files, as many at a time as PyTorch has threads.

    Returns:
        What is wrong, by file; empty where nothing is.
    """
    chunks = [
        (blocks, numbers[at : at + _BLOCKS_AT_ONCE])
        for blocks, numbers in pending
        for at in range(0, len(numbers), _BLOCKS_AT_ONCE)
    ]
    damage: dict[Path, str] = {}
    total = sum(len(numbers) for _, numbers in chunks)
    progress = ProgressBar(
        "verifying stored layers", total=total, unit="block", delay=_SECONDS_UNTIL_SHOWN
    )
    with progress, ThreadPoolExecutor(torch.get_num_threads()) as pool:
        for (blocks, numbers), reason in zip(chunks, pool.map(_damage, chunks), strict=True):
            progress.advance(len(numbers))
            if reason is not None:
                damage.setdefault(blocks.path, reason)
    return damage


def _damage(chunk: tuple[VerifiedBlocks, Sequence[int]]) -> str | None:
    blocks, numbers = chunk
    try:
        blocks.verify(numbers)
    except DataError as error:
        return str(error)
    return None
