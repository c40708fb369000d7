"""Unpacked archives and downloads from the Hub in the cache: list and remove them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import final

from filelock import FileLock

from elmo_framework.errors import RunError, allowed
from elmo_framework.io.files import cache_root, remove_folder

_KINDS = ("archives", "hub")


@final
@dataclass(frozen=True)
class StoredFolder:
    """A folder in the cache, as `elmo cache` lists it.

    Attributes:
        key: `archives/DIGEST`, or `hub/models--OWNER--NAME`.
        num_bytes: its size.
        last_used: when it was written, in seconds since 1970.
    """

    key: str
    num_bytes: int
    last_used: float


def stored_folders() -> list[StoredFolder]:
    """Describe all unpacked archives and downloads."""
    return [
        StoredFolder(f"{path.parent.name}/{path.name}", _size(path), path.stat().st_mtime)
        for path in _folders()
    ]


def clear_stored(key: str) -> int:
    """Remove a folder by its key, and return its size.

    Raises:
        RunError: there is none with this key.
    """
    by_key = {f"{path.parent.name}/{path.name}": path for path in _folders()}
    if key not in by_key:
        raise RunError(f"unknown folder {key!r} in {cache_root()}; {allowed(key, by_key)}")
    path = by_key[key]
    size = _size(path)
    with FileLock(path.with_name(f"{path.name}.lock")):
        remove_folder(path)
    return size


def _folders() -> list[Path]:
    paths = (path for kind in _KINDS for path in sorted((cache_root() / kind).glob("[!.]*")))
    return [path for path in paths if path.is_dir()]


def _size(folder: Path) -> int:
    files = (path for path in folder.rglob("*") if not path.is_symlink() and path.is_file())
    return sum(path.stat().st_size for path in files)
