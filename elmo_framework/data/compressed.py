"""Reading files that may be compressed: `.gz`, `.xz` and `.zst`."""

from __future__ import annotations

import gzip
import io
import lzma
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from elmo_framework.common.errors import DataError

_CHUNK = 1 << 17


def decompressed(file: BinaryIO, path: Path) -> BinaryIO:
    """Return what is in an open file, decompressed as the end of its name asks for.

    Raises:
        DataError: it ends with `.zst`, and the package that reads those is not installed.
    """
    match path.suffix:
        case ".gz":
            return cast(BinaryIO, gzip.open(file, "rb"))
        case ".xz":
            return cast(BinaryIO, lzma.open(file, "rb"))
        case ".zst":
            return _from_zstandard(file, path)
    return file


def data_suffix(path: Path) -> str:
    """Return how a name ends, in lower case, before the ending of a compressed file: `.csv`."""
    plain = path.with_suffix("") if path.suffix in (".gz", ".xz", ".zst") else path
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
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"cannot be read: {reason}", path=path) from error


def _from_zstandard(file: BinaryIO, path: Path) -> BinaryIO:
    try:
        import zstandard  # type: ignore[import-not-found, unused-ignore]  # noqa: F401
    except ImportError as error:
        raise DataError(
            "a .zst file needs the package zstandard: pip install 'elmo-framework[zstandard]', "
            "or decompress the file",
            path=path,
        ) from error
    return cast(BinaryIO, io.BufferedReader(_Joined(_zstandard_frames(file, path))))


def _zstandard_frames(file: BinaryIO, path: Path) -> Iterator[bytes]:
    """Yield what the frames of a file hold; zstandard's own reader takes a torn one for whole."""
    import zstandard

    held = file.read(_CHUNK)
    try:
        while held:
            frame = zstandard.ZstdDecompressor().decompressobj()
            while not frame.eof:
                if not held:
                    raise EOFError("compressed file ended before the end-of-stream marker")
                yield frame.decompress(held)
                held = frame.unused_data if frame.eof else file.read(_CHUNK)
            held = held or file.read(_CHUNK)
    except zstandard.ZstdError as error:
        raise DataError(f"cannot be read: {error}", path=path) from error


class _Joined(io.RawIOBase):
    """A file of pieces that follow each other."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._held = pieces, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._held:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._held = piece
        taken, self._held = self._held[: len(buffer)], self._held[len(buffer) :]
        buffer[: len(taken)] = taken
        return len(taken)
