"""Unpacked archives and downloads in the cache: list and remove them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

from filelock import FileLock

from elmo_framework.errors import RunError, allowed
from elmo_framework.io.files import cache_root, remove

_FOLDERS = ("archives", "hub")
_DOWNLOADS = "downloads"
_DOWNLOAD = re.compile(r"\.?([0-9a-f]{12})-.")
"""The start of the name of a download, and of the files that are kept beside it."""


@final
@dataclass(frozen=True)
class StoredItem:
    """An archive or a download in the cache, as `elmo cache` lists it.

    Attributes:
        key: `archives/DIGEST`, `hub/models--OWNER--NAME` or `downloads/DIGEST-NAME`.
        num_bytes: its size.
        last_used: when it was written, in seconds since 1970.
    """

    key: str
    num_bytes: int
    last_used: float


def stored_items() -> list[StoredItem]:
    """Describe all unpacked archives and downloads, also those that were interrupted."""
    return [
        StoredItem(key, _size(paths), max(path.stat().st_mtime for path in paths))
        for key, paths in _paths().items()
    ]


def clear_stored(key: str) -> int:
    """Remove an archive or a download by its key, and return its size.

    Raises:
        RunError: there is none with this key.
    """
    by_key = _paths()
    if key not in by_key:
        raise RunError(f"unknown key {key!r} in {cache_root()}; {allowed(key, by_key)}")
    paths = by_key[key]
    size = _size(paths)
    with FileLock(cache_root() / f"{key}.lock"):
        for path in paths:
            remove(path)
    return size


def _paths() -> dict[str, list[Path]]:
    """Return the folder of each archive and download of the Hub, and the files of each download."""
    folders = (path for kind in _FOLDERS for path in sorted((cache_root() / kind).glob("[!.]*")))
    paths = {f"{path.parent.name}/{path.name}": [path] for path in folders if path.is_dir()}
    return paths | dict(_downloads())


def _downloads() -> Iterator[tuple[str, list[Path]]]:
    """Yield the key of each download, and its files: itself or a part of it, and its digest.

    The lock of a download that failed is no file of it.
    """
    by_digest = defaultdict[str, list[Path]](list)
    for path in sorted((cache_root() / _DOWNLOADS).glob("*")):
        if match := _DOWNLOAD.match(path.name):
            by_digest[match[1]].append(path)
    for paths in by_digest.values():
        shortest = min((path.name.removeprefix(".") for path in paths), key=len)
        name = shortest.removesuffix(".lock")
        if files := [path for path in paths if path.name != f"{name}.lock"]:
            yield f"{_DOWNLOADS}/{name}", files


def _size(paths: Sequence[Path]) -> int:
    files = (file for path in paths for file in (path, *path.rglob("*")))
    return sum(file.stat().st_size for file in files if not file.is_symlink() and file.is_file())
