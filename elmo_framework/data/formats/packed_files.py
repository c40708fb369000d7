"""Files as they are, compressed, or inside an archive."""

from __future__ import annotations

import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from elmo_framework.console import plural
from elmo_framework.data.formats.compressed import SUFFIXES, decompressed, limited, reading
from elmo_framework.errors import DataError, allowed
from elmo_framework.io.files import archive_path

_TAR_ENDINGS = (".tar", ".tgz", *(f".tar{suffix}" for suffix in SUFFIXES))


@contextmanager
def open_packed(path: Path) -> Iterator[tuple[str, BinaryIO]]:
    """Open a file for its bytes, unpacked as its ending says: .gz, .bz2, .xz, .zst, .zip or .tar.

    Args:
        path: a file, an archive that holds one file, or `(archive)#inner`.

    Yields:
        the name of what is read, without the ending of a compression, and its bytes.

    Raises:
        DataError: it cannot be read, or the archive has no such file; within the `with`, too,
            where what was packed turns out to be broken.
    """
    place, inner = archive_path(path)
    try:
        with reading(place) as file, ExitStack() as stack:
            held, source = file, place
            if place.suffix == ".zip":
                held, source = _from_zip(file, place, inner, stack)
            elif place.name.endswith(_TAR_ENDINGS):
                held, source = _from_tar(file, place, inner, stack)
            elif inner is not None:
                raise DataError(f"this is no archive, so no {inner!r} is in it", path=place)
            name = source.stem if source.suffix in SUFFIXES else source.name
            content = decompressed(held, source)
            yield name, content if held is file else limited(content, file, place)
    except (zipfile.BadZipFile, tarfile.TarError) as error:
        raise DataError(f"cannot be read: {error}", path=place) from error


def _from_zip(
    file: BinaryIO, path: Path, inner: str | None, stack: ExitStack
) -> tuple[BinaryIO, Path]:
    try:
        archive = stack.enter_context(zipfile.ZipFile(file))
        names = [entry.filename for entry in archive.infolist() if not entry.is_dir()]
        name = _chosen(path, names, inner)
        held = stack.enter_context(archive.open(name))
    except RuntimeError as error:  # encrypted, or compressed in a way that Python does not know
        raise DataError(f"cannot be read: {error}", path=path) from error
    return cast(BinaryIO, held), Path(name)


def _from_tar(
    file: BinaryIO, path: Path, inner: str | None, stack: ExitStack
) -> tuple[BinaryIO, Path]:
    plain = decompressed(file, path)
    archive = stack.enter_context(tarfile.open(fileobj=plain))  # noqa: SIM115 - the stack closes it
    names = [entry.name for entry in archive if entry.isfile()]
    name = _chosen(path, names, inner)
    held = archive.extractfile(name)
    assert held is not None
    return cast(BinaryIO, stack.enter_context(held)), Path(name)


def _chosen(path: Path, names: Sequence[str], inner: str | None) -> str:
    if inner is None:
        if len(names) == 1:
            return names[0]
        message = f"this archive holds {plural(len(names), 'file')}; name one: ({path})#..."
        raise DataError(f"{message}; {allowed('', names)}", path=path)
    if inner not in names:
        raise DataError(f"no {inner!r} is in this archive; {allowed(inner, names)}", path=path)
    return inner
