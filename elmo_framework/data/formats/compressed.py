"""Reading files that may be compressed: `.gz`, `.bz2`, `.xz` and `.zst`."""

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

from elmo_framework.errors import DataError

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
_HARMLESS, _LARGEST_RATIO = 1 << 30, 200
"""Text is seldom compressed to less than a twentieth; so many bytes are read in any case."""
_BUFFER = 1 << 17
_ERRORS = (OSError, EOFError, zlib.error, lzma.LZMAError, zstd.ZstdError)


def decompressed(file: BinaryIO, path: Path) -> BinaryIO:
    """Return what is in an open file, decompressed as the end of its name asks for.

    Reading it raises a DataError where it is a bomb; see `limited`.
    """
    open_compressed = _OPEN.get(path.suffix)
    if open_compressed is None:
        return file
    return limited(cast(BinaryIO, open_compressed(file, "rb")), file, path)


def limited(content: BinaryIO, file: BinaryIO, path: Path) -> BinaryIO:
    """Let no more be read of what is packed in a file than a text could make of it.

    Reading further raises a DataError: a few kilobytes can hold a line that fills all memory.

    Args:
        content: what is read.
        file: the packed file, opened. Of pipes, and of files in an archive, the size is not known,
            and `content` is returned as it is.
        path: what messages call it.
    """
    try:
        status = os.fstat(file.fileno())
    except (OSError, AttributeError):
        return content
    if not stat.S_ISREG(status.st_mode):
        return content
    most = max(_HARMLESS, _LARGEST_RATIO * status.st_size)
    return cast(BinaryIO, io.BufferedReader(_Limited(content, most, path), _BUFFER))


class _Limited(io.RawIOBase):
    """Bytes up to a limit."""

    def __init__(self, content: BinaryIO, most: int, path: Path) -> None:
        self._content, self._most, self._path = content, most, path

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
            raise io.UnsupportedOperation("the end is not known before all is decompressed")
        target = offset if whence == io.SEEK_SET else self._content.tell() + offset
        self._require_below(target)
        return self._content.seek(target)

    def tell(self) -> int:
        return self._content.tell()

    def close(self) -> None:
        self._content.close()
        super().close()

    def _require_below(self, position: int) -> None:
        if position > self._most:
            raise DataError(
                f"more than {self._most:,} bytes are packed in this file, which is no text then; "
                "unpack it yourself if it is one",
                path=self._path,
            )


def data_suffix(path: Path) -> str:
    """Return how a name ends, in lower case, before the ending of a compressed file: `.csv`."""
    plain = path.with_suffix("") if path.suffix in _OPEN else path
    return plain.suffix.lower()


@contextmanager
def reading(path: Path) -> Iterator[BinaryIO]:
    """Open a file for what `decompressed` reads of it; the file itself is given.

    Raises:
        DataError: it cannot be read, or is damaged.
    """
    try:
        with path.open("rb") as file:
            yield file
    except _ERRORS as error:
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"cannot be read: {reason}", path=path) from error
