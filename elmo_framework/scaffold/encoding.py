"""Recognize text that is not UTF-8, and copy it to a file in UTF-8."""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterator
from pathlib import Path

from elmo_framework.data.formats.compressed import decompressed, is_compressed, reading
from elmo_framework.data.formats.text_files import is_visible
from elmo_framework.errors import DataError, RunError, shown
from elmo_framework.io.files import writing

_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_LIKELY = "cp1252"
"""Windows-1252, which spreadsheets of Western languages write; a superset of Latin-1's text."""


def require_utf8(path: Path) -> None:
    """Raise DataError for a file, or a file in a folder, that is not UTF-8, with what to do."""
    for file in sorted(_files(path)) if path.is_dir() else [path]:
        with reading(file) as opened:
            for number, line in enumerate(decompressed(opened, file), start=1):
                try:
                    line.decode()
                except UnicodeDecodeError:
                    raise _not_utf8(file, number, line) from None


def require_encoding(encoding: str) -> None:
    """Raise RunError for a name that is not an encoding of text."""
    try:
        "".encode(encoding)
    except LookupError:
        raise RunError(
            f"--encoding: unknown encoding {encoding!r}; usual ones are cp1252, latin-1, utf-16"
        ) from None


def write_utf8_copy(path: Path, encoding: str, *, force: bool) -> Path:
    """Copy a text file, decompressed, to a file in UTF-8 next to it, and return that file.

    Args:
        path: of the file.
        encoding: of the file.
        force: overwrite the copy if it exists.

    Raises:
        RunError: the copy exists, or the file is not in this encoding.
    """
    name = path.stem if is_compressed(path) else path.name
    stem, _, suffix = name.rpartition(".")
    copy = path.with_name(f"{stem}.utf8.{suffix}" if stem else f"{suffix}.utf8")
    if copy.exists() and not force:
        raise RunError(f"{copy} already exists; pass it to `elmo new`, or overwrite it by --force")
    try:
        with reading(path) as opened, writing(copy) as target:
            stream = io.BufferedReader(io.BytesIO(decompressed(opened, path).read()))
            target.writelines(io.TextIOWrapper(stream, encoding=encoding, newline=""))
    except UnicodeError as error:
        raise RunError(f"{path}: not valid text in {encoding}: {error}") from error
    return copy


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file() and is_visible(path))


def _not_utf8(path: Path, number: int, line: bytes) -> DataError:
    encoding = "utf-16" if number == 1 and line.startswith(_UTF16_MARKS) else _LIKELY
    text = line.decode(encoding, errors="replace").strip()
    return DataError(
        f"this is not UTF-8 text. In {encoding}, which spreadsheets often write, the line is "
        f"{shown(text)}. If that reads well, add: --encoding {encoding}",
        path=path,
        line=number,
    )
