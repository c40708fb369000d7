"""Read text files as blocks of whole lines, for one process each.

The boundaries of blocks come from the text alone. A job that reads only a part of the blocks seeks
over the others in plain files; compressed files are decompressed as a whole.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b, sha256
from pathlib import Path
from typing import BinaryIO, NamedTuple, final

from elmo_framework.config.job_part import WHOLE, JobPart
from elmo_framework.data.formats.compressed import decompressed, is_compressed, reading
from elmo_framework.data.formats.text_files import STANDARD_INPUT, data_files, require_plain_text

_SAMPLE_BYTES = 1 << 16
_BYTES_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class LineRange:
    """Consecutive whole lines of one file.

    Attributes:
        path: the file.
        first_line: the number of the first line, from 1; of lines that are UTF-8, it may be 2
            where lines before them were not read.
        content: the bytes.
        begin: where they begin in the file, if lines before them were not read.
    """

    path: Path
    first_line: int
    content: bytes
    begin: int = 0

    def number_in_file(self, number: int) -> int:
        """Return the exact number of a line that is counted from `first_line`, for messages."""
        if not self.begin:
            return number
        with self.path.open("rb") as file:
            return number - self.first_line + _line_at(file, self.begin)


@final
@dataclass(frozen=True)
class Block:
    """The unit of work of a process.

    Attributes:
        number: from 0, in the order of the text.
        ranges: of files, one after the other.
        num_bytes: the number of (compressed) bytes read from disk.
    """

    number: int
    ranges: tuple[LineRange, ...]
    num_bytes: int

    @property
    def digest(self) -> str:
        """The SHA-256 of the lines."""
        total = sha256()
        for lines in self.ranges:
            total.update(lines.content)
        return total.hexdigest()


def text_files(paths: Sequence[Path]) -> list[Path]:
    """Expand files, folders, patterns and `-` for standard input.

    Raises:
        DataError: one of them has no files, or a file is a table.
    """
    files = [
        file for path in paths for file in ([path] if path == STANDARD_INPUT else data_files(path))
    ]
    require_plain_text(files)
    return files


def read_blocks(files: Sequence[Path], size: int, part: JobPart = WHOLE) -> Iterator[Block]:
    """Yield the lines of files in blocks, whose boundaries depend on the lines only.

    Args:
        files: see `text_files`.
        size: minimum number of bytes of a block; the maximum is twice as much, and the rest of a
            line.
        part: reads every `total`-th block.

    Raises:
        DataError: a file cannot be read.
    """
    number, length, ranges, num_read = 0, 0, list[LineRange](), 0
    for file in files:
        for lines in _unread_ranges(file, size, part):
            if part.includes(number):
                ranges.append(lines.read())
                num_read += lines.num_read
            length += lines.length
            if length >= size:
                if ranges:
                    yield Block(number, tuple(ranges), num_read)
                number, length, ranges, num_read = number + 1, 0, [], 0
    if ranges:
        yield Block(number, tuple(ranges), num_read)


def sample_digest(file: Path) -> str:
    """Return a digest of the size, the first and the last bytes of a file."""
    size = file.stat().st_size
    digest = blake2b(str(size).encode(), digest_size=16)
    with file.open("rb") as stream:
        digest.update(stream.read(_SAMPLE_BYTES))
        stream.seek(max(0, size - _SAMPLE_BYTES))
        digest.update(stream.read())
    return digest.hexdigest()


def size_on_disk(file: Path) -> int:
    """Return the size of a file; 0 for standard input."""
    return 0 if file == STANDARD_INPUT else file.stat().st_size


class _UnreadRange(NamedTuple):
    """Consecutive lines of one file that need not be read.

    Attributes:
        length: the number of their bytes.
        read: returns them, before the next range is asked for.
        num_read: the number of (compressed) bytes on disk.
    """

    length: int
    read: Callable[[], LineRange]
    num_read: int


def _unread_ranges(path: Path, size: int, part: JobPart) -> Iterator[_UnreadRange]:
    if path == STANDARD_INPUT:
        for lines in split_lines(sys.stdin.buffer, path, size):
            yield _UnreadRange(len(lines.content), partial(_same, lines), len(lines.content))
        return
    with reading(path) as file:
        if part != WHOLE and not is_compressed(path):
            for begin, end in _boundaries(file, size):
                yield _UnreadRange(end - begin, partial(_read, file, path, begin, end), end - begin)
            return
        position = 0
        for lines in split_lines(decompressed(file, path), path, size):
            yield _UnreadRange(len(lines.content), partial(_same, lines), file.tell() - position)
            position = file.tell()


def split_lines(file: BinaryIO, path: Path, size: int) -> Iterator[LineRange]:
    """Yield an open file in ranges of `size` bytes and the rest of a line."""
    line = 1
    while content := file.read(size):
        if not content.endswith(b"\n"):
            content += file.readline()
        yield LineRange(path, line, content)
        line += content.count(b"\n")


def first_line(file: BinaryIO, begin: int, content: bytes) -> int:
    """Return the number of the first line: exact if a line is not UTF-8, otherwise 1 or 2.

    To count the lines of all blocks, every part would read the whole input; see
    `LineRange.number_in_file` for other errors.
    """
    try:
        content.decode()
    except UnicodeDecodeError:
        return _line_at(file, begin)
    return 2 if begin else 1


def _line_at(file: BinaryIO, begin: int) -> int:
    """Return the number of the line that begins at an offset."""
    file.seek(0)
    number = 1
    while begin:
        before = file.read(min(begin, _BYTES_AT_ONCE))
        number, begin = number + before.count(b"\n"), begin - len(before)
    return number


def _same(lines: LineRange) -> LineRange:
    return lines


def _boundaries(file: BinaryIO, size: int) -> Iterator[tuple[int, int]]:
    """Yield where the ranges of `split_lines` begin and end, and read few bytes of each."""
    begin, num_bytes = 0, file.seek(0, os.SEEK_END)
    while begin < num_bytes:
        file.seek(begin + size - 1)
        file.readline()  # the rest of the line, or the end of the line that the range ends with
        end = min(file.tell(), num_bytes)
        yield begin, end
        begin = end


def _read(file: BinaryIO, path: Path, begin: int, end: int) -> LineRange:
    file.seek(begin)
    content = file.read(end - begin)
    return LineRange(path, first_line(file, begin, content), content, begin)
