"""Archives: folders as one file, checked when they are written and when they are read.

An archive is a gzip-compressed tar file. Its first member is `archive.json`, which lists the format
number and the size and the SHA-256 of every other member. The same files always give the same
bytes.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import tarfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Any

from filelock import FileLock

from elmo_framework.console import ProgressBar
from elmo_framework.errors import DataError
from elmo_framework.io.files import cache_root, digest, replacing
from elmo_framework.io.formats import check_format
from elmo_framework.io.hub import hub_cache
from elmo_framework.io.remote import as_path
from elmo_framework.version import VERSION

MANIFEST = "archive.json"
_CONFIGS = (".jsonnet", ".json")
FORMAT = 1
"""The format number of new archives; older ones are read too."""

_FOLDER = "archives"
_CHUNK = 1 << 20
_MANIFEST_LIMIT = 1 << 24
_MOST_BYTES, _MOST_RATIO = 1 << 30, 200
"""More than both, in total and compared with the archive, is not unpacked; as of texts."""

_LONGEST_NAME = 255
"""Bytes of a name of a file, on the usual file systems."""

_COMPRESSION = 6
_DAMAGED = (tarfile.TarError, OSError, EOFError, zlib.error)


def write_archive(files: Mapping[str, Path | bytes], archive: Path) -> None:
    """Write an archive; an existing file is replaced at the end.

    Args:
        files: by their names in the archive, which use `/`: the path of each, or its content.
        archive: the path of the archive.
    """
    names = sorted(files)
    members = {name: _measured(files[name]) for name in names}
    manifest = {"format": FORMAT, "elmo_framework": VERSION, "files": members}
    total = sum(member["bytes"] for member in members.values())
    with (
        compressed_tar(archive) as add,
        ProgressBar(f"writing {archive.name}", total=total, unit="byte") as progress,
    ):
        add(MANIFEST, json.dumps(manifest, indent=1).encode())
        for name in names:
            add(name, files[name])
            progress.advance(members[name]["bytes"])


@contextmanager
def compressed_tar(path: Path) -> Iterator[Callable[[str, Path | bytes], None]]:
    """Write a gzip-compressed tar file, whose bytes depend on its members alone.

    An existing file is replaced at the end. Yields what adds a member: its name and its content,
    or the path of that.
    """
    with (
        replacing(path) as aside,
        aside.open("wb") as raw,
        gzip.GzipFile("", "wb", _COMPRESSION, raw, mtime=0) as packed,  # of no name and no time
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        yield partial(_add, tar)


def is_archive(path: Path) -> bool:
    """Return whether a file is an archive of `write_archive`, whole or not."""
    try:
        with tarfile.open(path, "r:gz") as tar:
            first = tar.next()
    except _DAMAGED:
        return False
    return first is not None and first.name == MANIFEST


def unpacked(archive: Path) -> Path:
    """Return the folder with the files of an archive, in the cache; unpacked at the first use.

    Nothing in the archive is executed.

    Raises:
        DataError: it is not an archive of `elmo archive`, is of a newer format, is damaged, or has
            a member that is a link, is outside the folder, or is not the one that was written.
    """
    return cached_folder(digest([archive])[:32], partial(unpack, archive))


def cached_folder(name: str, write: Callable[[Path], object]) -> Path:
    """Return a folder of the cache by its name; `write` makes it at the first use.

    `elmo cache` lists and removes it.

    Args:
        name: a digest of what the content depends on.
        write: takes the path of the new folder.
    """
    folder = cache_root() / _FOLDER / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_name(f"{folder.name}.lock")):
        if not folder.is_dir():
            with replacing(folder) as aside:
                write(aside)
    return folder


def check_unpacked_size(num_bytes: int, archive: Path) -> None:
    """Refuse an archive whose members together are suspiciously large.

    Raises:
        DataError: they are.
    """
    if num_bytes > max(_MOST_BYTES, _MOST_RATIO * archive.stat().st_size):
        raise DataError(
            f"its files would have {num_bytes:,} bytes, which is suspicious", path=archive
        )


def local_folder(place: Path | str) -> Path:
    """Return the folder of a run or a biLM: a folder as it is, an archive unpacked.

    Args:
        place: a folder, an archive, or the URL of one, which is downloaded once; or
            `hf://OWNER/NAME[@REVISION]`.

    Raises:
        DataError: as of `unpacked`, or it cannot be downloaded.
        RunError: the extra `hub` is not installed.
    """
    path = Path(os.fspath(as_path(place)))
    return unpacked(path) if path.is_file() else path


def is_from_elsewhere(folder: Path) -> bool:
    """Return whether a folder comes from an archive or the Hub: someone else may have made it."""
    inside = folder.resolve()
    caches = (hub_cache(), cache_root() / _FOLDER)
    if any(inside.is_relative_to(cache.resolve()) for cache in caches):
        return True
    return any((parent / MANIFEST).is_file() for parent in (inside, *inside.parents))


def _measured(file: Path | bytes) -> dict[str, Any]:
    if isinstance(file, bytes):
        return {"bytes": len(file), "sha256": hashlib.sha256(file).hexdigest()}
    return {"bytes": file.stat().st_size, "sha256": digest([file])}


def _add(tar: tarfile.TarFile, name: str, file: Path | bytes) -> None:
    member = tarfile.TarInfo(name)  # of no owner and no time
    member.mode = 0o644
    if isinstance(file, bytes):
        member.size = len(file)
        tar.addfile(member, io.BytesIO(file))
        return
    member.size = file.stat().st_size
    with file.open("rb") as content:
        tar.addfile(member, content)


def unpack(archive: Path, folder: Path) -> None:
    """Write the files of an archive to a new folder; the errors are those of `unpacked`."""
    folder.mkdir()
    with _reading(archive) as tar:
        files = _manifest(tar, archive)
        total = sum(member["bytes"] for member in files.values())
        check_unpacked_size(total, archive)
        left = dict(files)
        with ProgressBar(f"unpacking {archive.name}", total=total, unit="byte") as progress:
            for member in tar:
                if member.name == MANIFEST:
                    continue
                expected = left.pop(member.name, None)
                if expected is None:
                    where = "twice in it" if member.name in files else f"not listed in {MANIFEST}"
                    raise DataError(f"the member {member.name!r} is {where}", path=archive)
                if not member.isreg() or member.size != expected["bytes"]:
                    raise _other(archive, member.name)
                target = folder / member.name
                target.parent.mkdir(parents=True, exist_ok=True)
                source = tar.extractfile(member)
                assert source is not None
                with source, target.open("xb") as file:
                    if _copy(source, file, progress) != expected["sha256"]:
                        raise _other(archive, member.name)
        if left:
            raise DataError(f"the member {min(left)!r} is missing", path=archive)
        # Last: it marks the folder as one that came from elsewhere.
        content = {"format": FORMAT, "files": files}
        (folder / MANIFEST).write_text(json.dumps(content, indent=1), encoding="utf-8")


def _copy(source: IO[bytes], file: IO[bytes], progress: ProgressBar) -> str:
    """Copy a member and return its SHA-256."""
    total = hashlib.sha256()
    for chunk in iter(partial(source.read, _CHUNK), b""):
        total.update(chunk)
        file.write(chunk)
        progress.advance(len(chunk))
    return total.hexdigest()


def _manifest(tar: tarfile.TarFile, archive: Path) -> dict[str, dict[str, Any]]:
    """Read and check the list of members."""
    first = tar.next()
    if first is None or first.name != MANIFEST or not first.isreg():
        message = f"not an archive of `elmo archive`: it has no {MANIFEST}"
        advice = "elmo import makes a run of an archive of AllenNLP"
        raise DataError(f"{message}; {advice}", path=archive)
    source = tar.extractfile(first)
    assert source is not None
    try:
        content = json.loads(source.read(_MANIFEST_LIMIT))
        check_format(content, name="an archive", supported=FORMAT, path=archive)
        files = dict(content["files"])
        is_sound = all(
            type(member["bytes"]) is int
            and member["bytes"] >= 0
            and isinstance(member["sha256"], str)
            for member in files.values()
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{MANIFEST} is damaged", path=archive) from error
    if not is_sound:
        raise DataError(f"{MANIFEST} is damaged", path=archive)
    folders = {str(folder) for name in files for folder in PurePosixPath(name).parents}
    for name in files:
        if not _is_inside(name):
            raise DataError(f"the member {name!r} would be outside the folder", path=archive)
        if name in folders:
            raise DataError(f"the member {name!r} is a file, and others are in it", path=archive)
        if any(len(os.fsencode(part)) > _LONGEST_NAME for part in PurePosixPath(name).parts):
            raise DataError(f"the name of the member {name[:40]!r}... is too long", path=archive)
    return files


def _is_inside(name: str) -> bool:
    parts = PurePosixPath(name).parts
    is_plain = name == "/".join(parts) and not any(sign in name for sign in ("\\", ":", "\0"))
    return is_plain and bool(parts) and parts[0] != "/" and ".." not in parts


def _other(archive: Path, name: str) -> DataError:
    return DataError(f"the member {name!r} is not the file that was written", path=archive)


@contextmanager
def _reading(archive: Path) -> Iterator[tarfile.TarFile]:
    try:
        with tarfile.open(archive, "r:gz") as tar:
            yield tar
    except tarfile.ReadError as error:
        message = f"neither a folder nor an archive of `elmo archive`: {error}"
        if archive.suffix in _CONFIGS:
            message = "a config, not a run; train it first, with elmo train CONFIG -s DIR"
        raise DataError(message, path=archive) from error
    except _DAMAGED as error:
        if isinstance(error, OSError) and error.errno is not None:  # the disk, not the archive
            raise
        raise DataError(f"the archive is damaged: {error}", path=archive) from error
