"""Atomic replacement of files and folders, digests, and the cache root."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from typing import TextIO

from elmo_framework.errors import RunError, nearest

IS_WINDOWS = os.name == "nt"

_CHUNK = 1 << 20
_DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def write_text(path: Path, text: str) -> None:
    """Replace the text of a file atomically."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Replace the content of a file atomically."""
    with replacing(path) as aside:
        aside.write_bytes(content)


@contextmanager
def writing(path: Path) -> Iterator[TextIO]:
    """Open a user's output file, replaced atomically as in `replacing`.

    Devices and pipes are written to directly; for a link, its target is replaced.

    Raises:
        OSError: the path is a folder, or its parent is not; raised before anything is written,
            with the path that the user wrote.
    """
    if path.is_dir():
        raise _os_error(errno.EISDIR, path)
    if path.exists() and not path.is_file():
        with path.open("w", encoding="utf-8") as file:
            yield file
        return
    target = path.resolve() if path.is_symlink() else path
    if not target.parent.is_dir():
        is_there = target.parent.exists()
        raise _os_error(errno.ENOTDIR if is_there else errno.ENOENT, target.parent)
    with replacing(target) as aside, aside.open("w", encoding="utf-8") as file:
        yield file


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path for a file or folder, renamed to `path` if the body succeeds.

    The content is synchronized to disk before the rename. When the body fails, or the process
    ends, `path` is unchanged. A folder at `path` is replaced by a folder only, and removed after
    the rename. Of a link to a folder the link is replaced, not the folder.

    A folder takes two renames. If the process is killed between them, `path` is missing: the old
    folder is `.NAME.replaced`, and is restored when `path` is replaced the next time, or by
    `settle`.
    """
    aside, replaced = _sibling(path, "writing"), _sibling(path, "replaced")
    remove(aside)
    _settle(replaced, path)
    try:
        with naming(path):
            yield aside
            if aside.is_file():
                _permit(aside, path)
            _synchronize(aside)
            if aside.is_dir() and path.is_dir():
                path.replace(replaced)
            aside.replace(path)
    except BaseException:
        _settle(replaced, path)
        remove(aside)
        raise
    synchronize(path.parent)
    _settle(replaced, path)


def settle(directory: Path) -> None:
    """Restore the folders in a directory whose replacement was killed between its two renames."""
    for replaced in list(directory.glob(".*.replaced")):
        _settle(replaced, directory / replaced.name[1:].removesuffix(".replaced"))


def require_file_size(path: Path, num_bytes: int) -> None:
    """Raise OSError if a file would exceed the limit of this process (`ulimit -f`).

    Python would get an error on writing, but HDF5 ends the process.
    """
    if os.name != "posix":
        return
    from resource import RLIM_INFINITY, RLIMIT_FSIZE, getrlimit

    limit, _ = getrlimit(RLIMIT_FSIZE)
    if limit != RLIM_INFINITY and num_bytes > limit:
        reason = f"it needs {num_bytes:,} bytes, and `ulimit -f` allows {limit:,}"
        raise OSError(errno.EFBIG, reason, str(path))


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Add `path` to disk errors, which name no file by themselves."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno in _DISK_ERRORS:
            error.filename = str(path)
        raise


@contextmanager
def repairable(path: Path, *, advice: str) -> Iterator[None]:
    """Turn an OSError into a RunError with advice on how to resume after fixing the cause.

    Args:
        path: the file to name for disk errors without one.
        advice: how to resume, such as `resume with --recover`.

    Raises:
        RunError: a file cannot be read or written.
    """
    try:
        with naming(path):
            yield
    except OSError as error:
        if error.filename is None:
            raise
        raise RunError(f"{error.filename}: {error.strerror}; fix this, then {advice}") from error


def remove(path: Path) -> None:
    """Remove a file or a folder, if it exists."""
    remove_folder(path)
    path.unlink(missing_ok=True)


def remove_folder(path: Path) -> None:
    """Remove a folder, or a link to one, if it exists; renamed first so that it goes at once."""
    _remove_as(_sibling(path, "removing"), path)


def path_hint(path: Path) -> str:
    """Ask whether another path was meant, after a sentence, as `errors.hint` does.

    Only the first part of the path that is missing is compared. Empty if nothing is near it.
    """
    try:
        missing = next(part for part in (*reversed(path.parents), path) if not part.exists())
        near = nearest(missing.name, [each.name for each in missing.parent.iterdir()])
    except (OSError, ValueError, StopIteration):  # nothing is missing, or it cannot be listed
        return ""
    return "" if near is None else f" Did you mean {str(missing.parent / near)!r}?"


def digest(paths: Iterable[Path]) -> str:
    """Return the SHA-256 of the concatenated content of files."""
    total = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                total.update(chunk)
    return total.hexdigest()


def synchronize(path: Path) -> None:
    """Flush a file, or the entries of a folder, to disk; Windows opens no folders."""
    if IS_WINDOWS and path.is_dir():
        return
    # Windows flushes only what may be written.
    descriptor = os.open(path, os.O_RDWR if IS_WINDOWS else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sibling(path: Path, use: str) -> Path:
    return path.with_name(f".{path.name}.{use}")


def _settle(replaced: Path, path: Path) -> None:
    """Remove a replaced folder, or restore it if `path` is missing."""
    if os.path.lexists(path):
        _remove_as(_sibling(path, "removing"), replaced)
    elif replaced.is_dir():
        replaced.replace(path)


def _remove_as(doomed: Path, folder: Path) -> None:
    if folder.is_dir():
        _delete(doomed)
        _delete(folder.replace(doomed))


def _delete(folder: Path) -> None:
    if folder.is_symlink():
        folder.unlink()
    elif folder.exists():
        rmtree(folder)


def _os_error(code: int, path: Path) -> OSError:
    # The constructor of OSError picks the subclass, such as FileNotFoundError, from the code.
    return OSError(code, os.strerror(code), str(path))


def _permit(path: Path, before: Path) -> None:
    """Give a file the mode of the one that it replaces, or apply the umask to a new one.

    Some libraries write for the owner only.
    """
    if before.is_file():
        path.chmod(stat.S_IMODE(before.stat().st_mode))
        return
    new = path.with_name(f"{path.name}.new")
    new.touch()
    path.chmod(new.stat().st_mode)
    new.unlink()


def _synchronize(path: Path) -> None:
    for inner in path.rglob("*") if path.is_dir() else ():
        synchronize(inner)
    synchronize(path)


_VARIABLE = "ELMO_CACHE_ROOT"


def cache_root() -> Path:
    """Return the folder of the cache: `$ELMO_CACHE_ROOT`, or `~/.cache/elmo_framework`.

    It need not exist yet.

    Raises:
        RunError: the home folder of this user, or of the user in the variable, is unknown.
    """
    root = os.environ.get(_VARIABLE)
    try:
        return Path(root).expanduser() if root else Path.home() / ".cache" / "elmo_framework"
    except RuntimeError as error:
        reason = f"it is {root!r}, of an unknown user" if root else "you have no home folder"
        raise RunError(
            f"set the environment variable {_VARIABLE} to the folder of the cache: {reason}"
        ) from error
