"""Open files that are plain, compressed, or inside an archive."""

from __future__ import annotations

import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from elmo_framework.console import plural
from elmo_framework.data.formats.compressed import (
    SUFFIXES,
    decompressed,
    is_compressed,
    limited,
    reading,
)
from elmo_framework.errors import DataError, allowed
from elmo_framework.io.remote import archive_path

_TAR_ENDINGS = (".tar", ".tgz", *(f".tar{suffix}" for suffix in SUFFIXES))


@contextmanager
def open_packed(path: Path) -> Iterator[tuple[str, BinaryIO]]:
    """Open a file in binary mode, unpacked by its suffix: .gz, .bz2, .xz, .zst, .zip or .tar.

    Args:
        path: a file, an archive with one file, or `(archive)#inner`.

    Yields:
        the name of the unpacked file, without a suffix of compression, and its stream.

    Raises:
        DataError: it cannot be read, or the archive has no such file; also inside the `with`, if
            the packed data is damaged.
    """
    outer, inner = archive_path(path)
    try:
        with reading(outer) as file, ExitStack() as stack:
            stream, source = file, outer
            if outer.suffix.lower() == ".zip":
                stream, source = _from_zip(file, outer, inner, stack)
            elif outer.name.lower().endswith(_TAR_ENDINGS):
                stream, source = _from_tar(file, outer, inner, stack)
            elif inner is not None:
                message = f"not an archive, so it does not contain {inner!r}"
                raise DataError(message, path=outer)
            name = source.stem if is_compressed(source) else source.name
            content = decompressed(stream, source)
            yield name, content if stream is file else limited(content, file, outer)
    except (zipfile.BadZipFile, tarfile.TarError) as error:
        raise DataError(f"cannot be read: {error}", path=outer) from error


def _from_zip(
    file: BinaryIO, path: Path, inner: str | None, stack: ExitStack
) -> tuple[BinaryIO, Path]:
    try:
        archive = stack.enter_context(zipfile.ZipFile(file))
        names = [entry.filename for entry in archive.infolist() if not entry.is_dir()]
        name = _member(path, names, inner)
        stream = stack.enter_context(archive.open(name))
    except RuntimeError as error:  # encrypted, or an unsupported compression
        raise DataError(f"cannot be read: {error}", path=path) from error
    return cast(BinaryIO, stream), Path(name)


def _from_tar(
    file: BinaryIO, path: Path, inner: str | None, stack: ExitStack
) -> tuple[BinaryIO, Path]:
    plain = decompressed(file, path)
    archive = stack.enter_context(tarfile.open(fileobj=plain))  # noqa: SIM115 - the stack closes it
    names = [entry.name for entry in archive if entry.isfile()]
    name = _member(path, names, inner)
    stream = archive.extractfile(name)
    assert stream is not None
    return cast(BinaryIO, stack.enter_context(stream)), Path(name)


def _member(path: Path, names: Sequence[str], inner: str | None) -> str:
    if inner is None:
        if len(names) == 1:
            return names[0]
        message = f"this archive has {plural(len(names), 'file')}; pass one as ({path})#..."
        raise DataError(f"{message}; {allowed('', names)}", path=path)
    if inner not in names:
        raise DataError(f"no {inner!r} in this archive; {allowed(inner, names)}", path=path)
    return inner
