"""Read files that may be compressed: `.gz`, `.bz2`, `.xz` and `.zst`."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from elmo_framework.errors import DataError, with_hint
from elmo_framework.io.files import path_hint

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_OPEN: dict[str, Callable[..., Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
    ".zst": zstd.open,
}
SUFFIXES = tuple(_OPEN)
_MIN_LIMIT, _MAX_RATIO = 1 << 30, 200
"""Text is seldom compressed by more than 20 times; the minimum of bytes is always allowed."""
_BUFFER = 1 << 17
_ERRORS = (OSError, EOFError, zlib.error, lzma.LZMAError, zstd.ZstdError)


def decompressed(file: BinaryIO, path: Path) -> BinaryIO:
    """Decompress an open file by the suffix of its name.

    Reading a decompression bomb raises a DataError; see `limited`.
    """
    open_compressed = _OPEN.get(path.suffix.lower())
    if open_compressed is None:
        return file
    return limited(cast(BinaryIO, open_compressed(file, "rb")), file, path)


def limited(content: BinaryIO, file: BinaryIO, path: Path) -> BinaryIO:
    """Limit the size of decompressed content to that of plausible text.

    Reading further raises a DataError: a few kilobytes could expand to a line that fills memory.

    Args:
        content: the decompressed stream.
        file: the packed file. The size of pipes and of files in an archive is unknown; `content`
            is then returned unchanged.
        path: for messages.
    """
    try:
        status = os.fstat(file.fileno())
    except (OSError, AttributeError):
        return content
    if not stat.S_ISREG(status.st_mode):
        return content
    max_bytes = max(_MIN_LIMIT, _MAX_RATIO * status.st_size)
    return cast(BinaryIO, io.BufferedReader(_Limited(content, max_bytes, path), _BUFFER))


class _Limited(io.RawIOBase):
    """A stream that raises a DataError beyond a number of bytes."""

    def __init__(self, content: BinaryIO, max_bytes: int, path: Path) -> None:
        self._content, self._max_bytes, self._path = content, max_bytes, path

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._content.seekable()

    def readinto(self, buffer: Any) -> int:
        part = self._content.read(len(buffer))
        buffer[: len(part)] = part
        self._require_below(self._content.tell())
        return len(part)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence == io.SEEK_END:
            raise io.UnsupportedOperation("the size of compressed data is unknown")
        target = offset if whence == io.SEEK_SET else self._content.tell() + offset
        self._require_below(target)
        return self._content.seek(target)

    def tell(self) -> int:
        return self._content.tell()

    def close(self) -> None:
        self._content.close()
        super().close()

    def _require_below(self, position: int) -> None:
        if position > self._max_bytes:
            raise DataError(
                f"more than {self._max_bytes:,} bytes are packed in this file, too many for text; "
                "unpack it yourself if it is text",
                path=self._path,
            )


def data_suffix(path: Path) -> str:
    """Return the suffix in lower case, without that of a compression: `.csv` of `a.csv.gz`."""
    plain = path.with_suffix("") if is_compressed(path) else path
    return plain.suffix.lower()


def is_compressed(path: Path) -> bool:
    """Return whether the suffix of a path, in any case, is that of a compression."""
    return path.suffix.lower() in _OPEN


@contextmanager
def reading(path: Path) -> Iterator[BinaryIO]:
    """Open a file in binary mode for `decompressed`.

    Raises:
        DataError: it cannot be read, or is damaged.
    """
    try:
        with path.open("rb") as file:
            yield file
    except _ERRORS as error:
        question = path_hint(path) if isinstance(error, FileNotFoundError) else ""
        reason = getattr(error, "strerror", None) or error
        raise DataError(with_hint(f"cannot be read: {reason}", question), path=path) from error
