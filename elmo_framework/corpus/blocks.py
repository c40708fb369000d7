"""Read text files as blocks of whole lines, for one process each."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, final

from elmo_framework.data.formats.compressed import decompressed, reading
from elmo_framework.data.formats.text_files import STANDARD_INPUT, data_files


@dataclass(frozen=True)
class LineRange:
    """Consecutive whole lines of one file; `first_line` counts from 1."""

    path: Path
    first_line: int
    content: bytes


@final
@dataclass(frozen=True)
class Block:
    """The unit of work of a process.

    Attributes:
        number: from 0, in the order of the text.
        pieces: consecutive parts of files.
        num_bytes: the number of (compressed) bytes read from disk.
    """

    number: int
    pieces: tuple[LineRange, ...]
    num_bytes: int

    @property
    def digest(self) -> str:
        """The SHA-256 of the lines."""
        total = sha256()
        for piece in self.pieces:
            total.update(piece.content)
        return total.hexdigest()


def text_files(paths: Sequence[Path]) -> list[Path]:
    """Expand files, folders, patterns and `-` for standard input.

    Raises:
        DataError: one of them has no files.
    """
    return [
        file for path in paths for file in ([path] if path == STANDARD_INPUT else data_files(path))
    ]


def read_blocks(files: Sequence[Path], size: int) -> Iterator[Block]:
    """Yield the lines of files in blocks, whose boundaries depend on the lines only.

    Args:
        files: see `text_files`.
        size: minimum number of bytes of a block; the maximum is twice as much, and the rest of a
            line.

    Raises:
        DataError: a file cannot be read.
    """
    number, pieces, num_bytes = 0, list[LineRange](), 0
    for file in files:
        for piece, num_read in _pieces(file, size):
            pieces.append(piece)
            num_bytes += num_read
            if sum(len(piece.content) for piece in pieces) >= size:
                yield Block(number, tuple(pieces), num_bytes)
                number, pieces, num_bytes = number + 1, [], 0
    if pieces:
        yield Block(number, tuple(pieces), num_bytes)


def size_on_disk(file: Path) -> int:
    """Return the size of a file; 0 for standard input."""
    return 0 if file == STANDARD_INPUT else file.stat().st_size


def _pieces(path: Path, size: int) -> Iterator[tuple[LineRange, int]]:
    """Yield the pieces of a file, with the number of bytes read from disk for each."""
    if path == STANDARD_INPUT:
        for piece in split_lines(sys.stdin.buffer, path, size):
            yield piece, len(piece.content)
        return
    with reading(path) as file:
        position = 0
        for piece in split_lines(decompressed(file, path), path, size):
            yield piece, file.tell() - position
            position = file.tell()


def split_lines(file: BinaryIO, path: Path, size: int) -> Iterator[LineRange]:
    """Yield an open file in ranges of `size` bytes and the rest of a line."""
    line = 1
    while content := file.read(size):
        if not content.endswith(b"\n"):
            content += file.readline()
        yield LineRange(path, line, content)
        line += content.count(b"\n")
