"""Reading files that may be compressed: `.gz`, `.bz2`, `.xz` and `.zst`."""

from __future__ import annotations

import bz2
import gzip
import lzma
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from elmo_framework.common.errors import DataError

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
_ERRORS = (OSError, EOFError, zlib.error, lzma.LZMAError, zstd.ZstdError)


def decompressed(file: BinaryIO, path: Path) -> BinaryIO:
    """Return what is in an open file, decompressed as the end of its name asks for."""
    open_compressed = _OPEN.get(path.suffix)
    return cast(BinaryIO, open_compressed(file, "rb")) if open_compressed else file


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
