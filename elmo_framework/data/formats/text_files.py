"""Expand data paths, and read lines of UTF-8 text."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO, TypeVar

from elmo_framework.data.formats.compressed import data_suffix, decompressed, reading
from elmo_framework.errors import DataError, with_hint
from elmo_framework.io.files import path_hint
from elmo_framework.io.remote import RemotePath

STANDARD_INPUT = Path("-")
"""The path that means standard input."""

NO_EXAMPLE = "this file has no examples"
NO_SENTENCE = "this file has no sentences"

ItemT = TypeVar("ItemT")
ParsedT = TypeVar("ParsedT")

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_TABLES = (".csv", ".tsv")


def data_files(path: Path) -> list[Path]:
    """Return the files of a data path, sorted.

    Args:
        path: a file; a folder, for its files that are not hidden; or a pattern
            (`data/shard-*.txt`), for the files that match. Each may be a URL.

    Raises:
        DataError: there are none.
    """
    if path.is_file():
        return [path]
    candidates = path.iterdir() if path.is_dir() else matches(path)
    files = sorted(filter(_is_visible_file, candidates))
    if not files:
        raise DataError(_no_files(path), path=path)
    return files


def require_plain_text(paths: Iterable[Path]) -> None:
    """Refuse tables, whose header, ids and labels would be taken for words.

    Raises:
        DataError: the suffix of a path is .csv or .tsv.
    """
    for path in paths:
        if data_suffix(path) in _TABLES:
            raise DataError(
                "this is a table, and all of its columns would be read as text; pass the sentences "
                "alone, one per line",
                path=path,
            )


def require_data(path: Path) -> None:
    """Raise DataError if a path does not exist and no file matches it, before any work is done."""
    if not path.exists() and not any(matches(path)):
        raise DataError(_no_files(path), path=path)


def _no_files(path: Path) -> str:
    if isinstance(path, RemotePath):
        return path.problem() or "this folder has no files"
    if not path.is_dir():
        return with_hint("not found, as a file, folder or pattern", path_hint(path))
    every = path / "**" / "*"
    if any(map(_is_visible_file, matches(every))):
        return f"this folder has no files, but its subfolders do; pass {str(every)!r}"
    return "this folder has no files"


def is_visible(path: Path) -> bool:
    """Return whether a file or a folder is not hidden."""
    return not path.name.startswith(".")


def _is_visible_file(path: Path) -> bool:
    return path.is_file() and is_visible(path)


def matches(pattern: Path) -> Iterator[Path]:
    """Yield the files and folders that match a pattern, in any order.

    Raises:
        DataError: a part of it contains `**` and more, which Python 3.13 would read as `*`.
    """
    if isinstance(pattern, RemotePath):
        yield from pattern.matches()
        return
    if part := next((part for part in pattern.parts if "**" in part and part != "**"), None):
        message = (
            f"invalid pattern: {part!r}; '**' must be a whole part of the path, as in 'a/**/b'"
        )
        raise DataError(message, path=pattern)
    try:
        yield from Path(pattern.anchor).glob(str(pattern.relative_to(pattern.anchor)))
    except ValueError as error:  # such as a null character, on Python 3.13
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
        DataError: as `read_lines`, or there are none.
    """
    lines = ((number, line) for number, line in read_lines(path) if line.strip())
    return require_nonempty(lines, NO_EXAMPLE, path)


def require_nonempty(items: Iterable[ItemT], message: str, path: Path) -> Iterator[ItemT]:
    """Yield the items read from a path, or raise DataError with the message if there are none."""
    is_empty = True
    for item in items:
        is_empty = False
        yield item
    if is_empty:
        raise DataError(message, path=path)


def parsed_lines(path: Path, parse: Callable[[str], ParsedT]) -> Iterator[ParsedT]:
    """Parse each line that is not blank.

    Raises:
        DataError: as `nonblank_lines`, or `parse` rejects a line.
    """
    for number, line in nonblank_lines(path):
        with error_context(path, number):
            parsed = parse(line)
        yield parsed


@contextmanager
def spooled(stream: BinaryIO) -> Iterator[BinaryIO]:
    """Copy a stream to a temporary file, so that it can be read more than once."""
    with TemporaryFile() as copy:
        shutil.copyfileobj(stream, copy)
        yield copy


@contextmanager
def error_context(path: Path | None, line: int | None) -> Iterator[None]:
    """Turn a ValueError, DataError or SyntaxError (of `xml.etree`) into a DataError with a place.

    A DataError that already names a file is unchanged.
    """
    try:
        yield
    except (DataError, ValueError, SyntaxError) as error:
        if isinstance(error, DataError) and error.path is not None:
            raise
        raise DataError(str(error), path=path, line=line) from error


def decoded_lines(file: BinaryIO, path: Path, *, first: int = 1) -> Iterator[tuple[int, str]]:
    """Yield the lines of an open file as `read_lines` does.

    Args:
        file: in binary mode.
        path: for messages.
        first: the number of the first line.

    Raises:
        DataError: a line is not UTF-8.
    """
    for number, line in enumerate(file, start=first):
        content = line.removeprefix(_BYTE_ORDER_MARK) if number == 1 else line
        try:
            text = content.decode()
        except UnicodeDecodeError as error:
            invalid = f"{content[error.start : error.end]!r}, column {error.start + 1}"
            message = f"not valid UTF-8 text ({invalid}): convert the file to UTF-8"
            raise DataError(message, path=path, line=number) from error
        yield number, text.rstrip("\r\n")
