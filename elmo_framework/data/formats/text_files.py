"""What a data path means, and reading text from it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO, TypeVar

from elmo_framework.data.formats.compressed import decompressed, reading
from elmo_framework.errors import DataError

STANDARD_INPUT = Path("-")
"""The path that stands for standard input."""

NO_EXAMPLE = "there is no example in this file"

ItemT = TypeVar("ItemT")
ParsedT = TypeVar("ParsedT")

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def data_files(path: Path) -> list[Path]:
    """Return the files that a data path names, in the order of their names.

    Args:
        path: a file; a folder, for the files in it that are not hidden; or a pattern
            (`data/shard-*.txt`), for the files that match.

    Raises:
        DataError: there are none.
    """
    if path.is_file():
        return [path]
    found = path.iterdir() if path.is_dir() else matches(path)
    files = sorted(filter(_is_visible_file, found))
    if not files:
        raise DataError(f"this is {_without_files(path)}", path=path)
    return files


def require_data(path: Path) -> None:
    """Refuse a data path that stands for nothing, before any work is done for others.

    Raises:
        DataError: it is no file or folder, and no file matches it.
    """
    if not path.exists() and not any(matches(path)):
        raise DataError(f"this is {_without_files(path)}", path=path)


def _without_files(path: Path) -> str:
    if not path.is_dir():
        return "no file, folder or pattern of files"
    every = path / "**" / "*"
    if any(map(_is_visible_file, matches(every))):
        return f"a folder without files, but there are some in its folders: give {str(every)!r}"
    return "a folder without files"


def is_visible(path: Path) -> bool:
    """Tell whether a file or a folder is not hidden."""
    return not path.name.startswith(".")


def _is_visible_file(path: Path) -> bool:
    return path.is_file() and is_visible(path)


def matches(pattern: Path) -> Iterator[Path]:
    """Yield what a pattern stands for, in any order.

    Raises:
        DataError: a part of it contains `**` and more, which Python 3.13 would read as `*`.
    """
    if part := next((part for part in pattern.parts if "**" in part and part != "**"), None):
        message = (
            f"invalid pattern: {part!r}; '**' must be a whole part of the path, as in 'a/**/b'"
        )
        raise DataError(message, path=pattern)
    try:
        yield from Path(pattern.anchor).glob(str(pattern.relative_to(pattern.anchor)))
    except ValueError as error:  # as of a null character, on Python 3.13
        raise DataError(f"invalid pattern: {error}", path=pattern) from error


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    r"""Yield the lines of a UTF-8 text file with their numbers, from 1; `\n` or `\r\n` ends one.

    A file whose name ends with `.gz`, `.bz2`, `.xz` or `.zst` is decompressed.

    Raises:
        DataError: the file cannot be opened, or a line is not UTF-8.
    """
    with reading(path) as file:
        yield from decoded_lines(decompressed(file, path), path)


def nonblank_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not blank, as `read_lines` does.

    Raises:
        DataError: as there, or there is none.
    """
    lines = ((number, line) for number, line in read_lines(path) if line.strip())
    return require_nonempty(lines, NO_EXAMPLE, path)


def require_nonempty(items: Iterable[ItemT], message: str, path: Path) -> Iterator[ItemT]:
    """Yield what was read from a path.

    Raises:
        DataError: it is nothing; with the message.
    """
    is_empty = True
    for item in items:
        is_empty = False
        yield item
    if is_empty:
        raise DataError(message, path=path)


def parsed_lines(path: Path, parse: Callable[[str], ParsedT]) -> Iterator[ParsedT]:
    """Yield what each line is parsed to that is not blank.

    Raises:
        DataError: as of `nonblank_lines`, or `parse` refused a line.
    """
    for number, line in nonblank_lines(path):
        with error_context(path, number):
            held = parse(line)
        yield held


@contextmanager
def spooled(stream: BinaryIO) -> Iterator[BinaryIO]:
    """Copy a stream to a temporary file, so that it can be read more than once."""
    with TemporaryFile() as copy:
        shutil.copyfileobj(stream, copy)
        yield copy


@contextmanager
def error_context(path: Path | None, line: int | None) -> Iterator[None]:
    """Say where in the data an error arose, where that is known.

    Raises:
        DataError: for a `ValueError` or a `DataError` inside.
    """
    try:
        yield
    except (DataError, ValueError) as error:
        raise DataError(str(error), path=path, line=line) from error


def decoded_lines(file: BinaryIO, path: Path, *, first: int = 1) -> Iterator[tuple[int, str]]:
    """Yield the lines of an open file as `read_lines` does.

    Args:
        file: opened to read bytes.
        path: what messages call it.
        first: the number of its first line.

    Raises:
        DataError: a line is not UTF-8.
    """
    for number, line in enumerate(file, start=first):
        content = line.removeprefix(_BYTE_ORDER_MARK) if number == 1 else line
        try:
            text = content.decode()
        except UnicodeDecodeError as error:
            found = f"{content[error.start : error.end]!r}, column {error.start + 1}"
            message = f"this is no UTF-8 text ({found}): convert the file to UTF-8"
            raise DataError(message, path=path, line=number) from error
        yield number, text.rstrip("\r\n")
