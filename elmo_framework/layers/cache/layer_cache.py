"""Layer caches on the disk, and their total size."""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from shutil import disk_usage
from typing import final

import torch
from filelock import FileLock, Timeout

from elmo_framework import console
from elmo_framework.console import format_bytes
from elmo_framework.errors import DataError, RunError, allowed
from elmo_framework.io.files import cache_root, remove_folder, replacing, write_text
from elmo_framework.layers.cache.shard_files import open_shard, read_entries, write_shard
from elmo_framework.layers.cache.shards import Shard

DTYPES = {"float16": torch.float16, "float32": torch.float32}

_FORMAT = 1
"""A part of the key: caches of another format are not opened, and their layers computed again."""

_ABOUT = "about.json"
_LIMIT, _DEFAULT_LIMIT = "ELMO_CACHE_LIMIT", "100GB"
_UNITS = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_SIZE = re.compile(r"(\d+(?:\.\d+)?) *([KMGT]B|)", re.IGNORECASE)


@dataclass(frozen=True)
class CacheKey:
    """The properties that cached layers depend on.

    `digest` is that of the files of a biLM; for a transformer, its options follow.
    """

    digest: str
    num_layers: int
    dim: int
    dtype: str
    precision: str = "float32"
    state: str = "reset"

    @property
    def key(self) -> str:
        """The folder name of the cache."""
        described = json.dumps([_FORMAT, asdict(self)], sort_keys=True)
        return blake2b(described.encode(), digest_size=8).hexdigest()

    @property
    def vector_bytes(self) -> int:
        return self.dim * DTYPES[self.dtype].itemsize


@final
class LayerCache:
    """A folder of shards; each appears complete or not at all, and never changes.

    Args:
        key: the properties that its layers depend on.
        source: the weights that the layers come from, for `elmo cache`.
    """

    def __init__(self, key: CacheKey, *, source: Path) -> None:
        self._key, self._source = key, source
        self._folder = caches_folder() / key.key

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Let one process at a time build; the others report that they wait.

        Raises:
            OSError: the folder cannot be written.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        lock = _lock(self._folder)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            console.info(
                f"{self._folder}: another process computes the layers of this cache; waiting for it"
            )
            lock.acquire()
        try:
            yield
        finally:
            lock.release()

    def shards(self) -> list[Shard]:
        """Return the shards that can be read; a message names each damaged one."""
        # The time is for `elmo cache`; there may be no folder, and a read-only one stays as it is.
        with suppress(OSError):
            os.utime(self._folder)
        shards = []
        for path in _shard_folders(self._folder):
            try:
                shards.append(self._open(path))
            except DataError as error:
                console.info(f"{path}: damaged: {error}; its sentences are computed again")
        return shards

    def remove_damaged(self, suspects: Collection[Path]) -> None:
        """Remove the shards that cannot be read; to be called under the lock.

        Args:
            suspects: those whose whole content is verified. Another process may have put a sound
                shard into the place of a damaged one meanwhile.
        """
        for path in _shard_folders(self._folder):
            try:
                shard = self._open(path)
                if path in suspects and shard.blocks is not None:
                    shard.blocks.verify(range(len(shard.blocks)))
            except DataError:
                remove_folder(path)

    def write(self, shard: Shard) -> Shard:
        """Keep a shard and return it as it is read from the disk; to be called under the lock.

        Raises:
            OSError: the disk is full, or what is read back differs.
        """
        if not (self._folder / _ABOUT).exists():
            about = {"format": _FORMAT, **asdict(self._key), "source": str(self._source)}
            write_text(self._folder / _ABOUT, json.dumps(about, indent=2) + "\n")
        numbers = [int(path.name) for path in _shard_folders(self._folder)]
        path = self._folder / f"{max(numbers, default=-1) + 1:05}"
        with replacing(path) as aside:
            write_shard(shard, aside)
        try:
            return self._open(path)
        except DataError as error:
            raise OSError(errno.EIO, f"not as it was written: {error}", str(path)) from error

    def require_space(self, size: int) -> None:
        """Refuse to build what would not fit.

        Raises:
            OSError: the disk, or the limit on all layer caches, leaves less than `size` bytes.
        """
        free, used, limit = disk_usage(self._folder).free, size_of(caches_folder()), size_limit()
        if size > free:
            raise OSError(errno.ENOSPC, f"only {format_bytes(free)} are free", str(self._folder))
        if used + size > limit:
            raise OSError(
                errno.EDQUOT,
                f"layer caches may take {format_bytes(limit)} (${_LIMIT}) and use "
                f"{format_bytes(used)}; free space with `elmo cache clear`",
                str(self._folder),
            )

    def _open(self, path: Path) -> Shard:
        key = self._key
        return open_shard(path, num_layers=key.num_layers, dim=key.dim, dtype=key.dtype)


@dataclass(frozen=True)
class CacheEntry:
    """A cache, as `elmo cache` lists it.

    Attributes:
        key: its folder name.
        source: the weights that its layers come from.
        digest: of those weights and their options; see `CacheKey`.
        dtype: of the cached numbers.
        num_sentences: the number of sentences in it.
        num_bytes: its size.
        last_used: when it was opened last, in seconds since 1970.
    """

    key: str
    source: str
    digest: str
    dtype: str
    num_sentences: int
    num_bytes: int
    last_used: float


def caches_folder() -> Path:
    """Return the folder of all layer caches."""
    return cache_root() / "layers"


def reports() -> list[CacheEntry]:
    """Describe all layer caches, the one used last first."""
    entries = [_report(path) for path in _cache_folders()]
    return sorted(entries, key=lambda report: -report.last_used)


def clear(key: str) -> int:
    """Remove a layer cache and return its size.

    Raises:
        RunError: there is none with this key, or another process writes to it.
    """
    folder = caches_folder() / key
    keys = [path.name for path in _cache_folders()]
    if key not in keys:
        raise RunError(f"unknown layer cache {key!r} in {caches_folder()}; {allowed(key, keys)}")
    try:
        with _lock(folder).acquire(timeout=0):
            size = size_of(folder)
            remove_folder(folder)
    except Timeout as error:
        raise RunError(
            f"{folder}: another process writes to this layer cache; wait for it"
        ) from error
    return size


def size_limit() -> int:
    """Return how many bytes all layer caches may take: `$ELMO_CACHE_LIMIT`, or 100 GB.

    Raises:
        RunError: the variable is not a size.
    """
    text = os.environ.get(_LIMIT, _DEFAULT_LIMIT)
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise RunError(f"the environment variable {_LIMIT} is {text!r}; allowed: as 500MB or 20GB")
    return int(float(match[1]) * _UNITS[match[2].upper()])


def size_of(folder: Path) -> int:
    """Return the size of all files in a folder; others may remove some meanwhile."""
    total = 0
    for inner, _, names in os.walk(folder):
        for name in names:
            try:
                total += (Path(inner) / name).stat().st_size
            except FileNotFoundError:
                continue
    return total


def _report(folder: Path) -> CacheEntry:
    try:
        about = json.loads((folder / _ABOUT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        about = None
    if not isinstance(about, dict):
        about = {}
    return CacheEntry(
        key=folder.name,
        source=str(about.get("source", "unknown")),
        digest=str(about.get("digest", "unknown")),
        dtype=str(about.get("dtype", "unknown")),
        num_sentences=sum(map(_num_sentences, _shard_folders(folder))),
        num_bytes=size_of(folder),
        last_used=folder.stat().st_mtime,
    )


def _cache_folders() -> list[Path]:
    return sorted(path for path in caches_folder().glob("[!.]*") if path.is_dir())


def _shard_folders(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("[0-9]*") if path.name.isdigit())


def _lock(folder: Path) -> FileLock:
    # Next to the folder, so that the folder can be removed while the lock is held.
    return FileLock(folder.with_name(f".{folder.name}.lock"))


def _num_sentences(path: Path) -> int:
    try:
        return len(read_entries(path))
    except DataError:
        return 0
