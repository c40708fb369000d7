"""Text files as blocks of whole lines, each small enough for one process to work on."""

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
    """Some lines of one file.

    Attributes:
        path: of the file.
        first_line: the number of the first line, from 1.
        content: whole lines.
    """

    path: Path
    first_line: int
    content: bytes


@final
@dataclass(frozen=True)
class Block:
    """What one process works on at a time.

    Attributes:
        number: from 0, in the order of the text.
        pieces: parts of files that follow each other.
        num_bytes: what was read for it from the files as they are on the disk.
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
    """Return the files that the user named: files, folders, patterns, `-` for standard input.

    Raises:
        DataError: one of them names none.
    """
    return [
        file for path in paths for file in ([path] if path == STANDARD_INPUT else data_files(path))
    ]


def read_blocks(files: Sequence[Path], size: int) -> Iterator[Block]:
    """Yield all lines of some files; where blocks begin depends on nothing but the lines.

    Args:
        files: see `text_files`.
        size: how many bytes of text a block holds at least, and less than twice as much but for its
            last line.

    Raises:
        DataError: a file cannot be read.
    """
    number, held, num_bytes = 0, list[LineRange](), 0
    for file in files:
        for piece, num_read in _pieces(file, size):
            held.append(piece)
            num_bytes += num_read
            if sum(len(piece.content) for piece in held) >= size:
                yield Block(number, tuple(held), num_bytes)
                number, held, num_bytes = number + 1, [], 0
    if held:
        yield Block(number, tuple(held), num_bytes)


def size_on_disk(file: Path) -> int:
    """Return the bytes of a file; of standard input none are known."""
    return 0 if file == STANDARD_INPUT else file.stat().st_size


def _pieces(path: Path, size: int) -> Iterator[tuple[LineRange, int]]:
    """Yield the pieces of a file, each with the bytes that were read for it from the disk."""
    if path == STANDARD_INPUT:
        for piece in _cut(sys.stdin.buffer, path, size):
            yield piece, len(piece.content)
        return
    with reading(path) as file:
        position = 0
        for piece in _cut(decompressed(file, path), path, size):
            yield piece, file.tell() - position
            position = file.tell()


def _cut(file: BinaryIO, path: Path, size: int) -> Iterator[LineRange]:
    line = 1
    while content := file.read(size):
        if not content.endswith(b"\n"):
            content += file.readline()
        yield LineRange(path, line, content)
        line += content.count(b"\n")
