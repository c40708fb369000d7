"""Files that are never seen half written, and their digests."""

from __future__ import annotations

import errno
import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from typing import NamedTuple, TextIO

from elmo_framework.errors import RunError

_CHUNK = 1 << 20
_OF_THE_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def write_text(path: Path, text: str) -> None:
    """Replace a file's text at once: a reader sees the old text or the new one."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Replace a file's content at once: a reader sees the old content or the new one."""
    with replacing(path) as aside:
        aside.write_bytes(content)


@contextmanager
def writing(path: Path) -> Iterator[TextIO]:
    """Open a file that the user named; what is written takes its place as in `replacing`.

    Devices and pipes are written to as they are; of a link, the file that it leads to is replaced.

    Raises:
        OSError: a folder is there, or there is none to hold the file; raised before anything is
            written, with the path as given.
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
    """Give a name beside `path` to write a file or a folder at; it takes the place of `path`.

    What was written is on the disk before it gets its name. When the body fails, or the process
    ends, `path` is as it was. A folder there makes room for a folder only, and is removed when
    that has its name. Of a link to a folder the link is replaced, and the folder stays.

    A folder takes two renames. Where the process is killed between them, nothing has the name: what
    had it is `.NAME.replaced`, and has it again when `path` is replaced the next time.
    """
    aside, replaced = _beside(path, "writing"), _beside(path, "replaced")
    remove(aside)
    _settle(replaced, path)
    try:
        with naming(path):
            yield aside
            if aside.is_file():
                _permit(aside)
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


def require_file_size(path: Path, num_bytes: int) -> None:
    """Refuse a file that is larger than the system lets this process write (`ulimit -f`).

    Python gets an error there, but HDF5 ends the process.

    Raises:
        OSError: it is.
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
    """Let an error of the disk, which by itself names no file, name this one."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno in _OF_THE_DISK:
            error.filename = str(path)
        raise


@contextmanager
def repairable(path: Path, *, to_go_on: str) -> Iterator[None]:
    """Say of an error that names a file what the user does after repairing it.

    Args:
        path: what is named where the disk has an error.
        to_go_on: what the user does.

    Raises:
        RunError: a file cannot be read or written.
    """
    try:
        with naming(path):
            yield
    except OSError as error:
        if error.filename is None:
            raise
        raise RunError(f"{error.filename}: {error.strerror}; repair it, and {to_go_on}") from error


def remove(path: Path) -> None:
    """Remove a file or a folder, if it is there."""
    remove_folder(path)
    path.unlink(missing_ok=True)


def remove_folder(path: Path) -> None:
    """Remove a folder, if there is one; its name goes first, so that no half of it is seen.

    Of a link to a folder the link is removed.
    """
    _remove_as(_beside(path, "removing"), path)


def digest(paths: Iterable[Path]) -> str:
    """Return the SHA-256 of the content of some files, in the order given."""
    total = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                total.update(chunk)
    return total.hexdigest()


def synchronize(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _beside(path: Path, use: str) -> Path:
    return path.with_name(f".{path.name}.{use}")


def _settle(replaced: Path, path: Path) -> None:
    """Remove a folder that was replaced; if nothing has taken its place, it has its name again."""
    if os.path.lexists(path):
        _remove_as(_beside(path, "removing"), replaced)
    elif replaced.is_dir():
        replaced.replace(path)


def _remove_as(doomed: Path, folder: Path) -> None:
    """Remove a folder, or a link to one, if it is there, under another name."""
    if folder.is_dir():
        _delete(doomed)
        _delete(folder.replace(doomed))


def _delete(folder: Path) -> None:
    if folder.is_symlink():
        folder.unlink()
    elif folder.exists():
        rmtree(folder)


def _os_error(code: int, path: Path) -> OSError:
    """Return the error that the operating system gives such a code, as its own class."""
    return OSError(code, os.strerror(code), str(path))


def _permit(path: Path) -> None:
    """Give a file the permissions of any new one; some libraries write for the owner alone."""
    new = path.with_name(f"{path.name}.new")
    new.touch()
    path.chmod(new.stat().st_mode)
    new.unlink()


def _synchronize(path: Path) -> None:
    for inner in path.rglob("*") if path.is_dir() else ():
        synchronize(inner)
    synchronize(path)


_INNER = re.compile(r"(.*)\(([^()]+)\)#(.+)", re.DOTALL)


class ArchivePath(NamedTuple):
    """A file, and the file inside it that is meant.

    Attributes:
        file: what lies on the disk.
        inner: the name inside; None where the whole file is meant.
    """

    file: Path
    inner: str | None


def archive_path(path: Path) -> ArchivePath:
    """Take a path apart.

    What stands before the bracket is the folder of the archive, so that such a path can be made
    absolute as any other.
    """
    match = _INNER.fullmatch(str(path))
    if match is None:
        return ArchivePath(path, None)
    folder, archive, inner = match.groups()
    return ArchivePath(Path(folder) / archive, inner)


_VARIABLE = "ELMO_CACHE_ROOT"


def cache_root() -> Path:
    """Return the folder of the cache: `$ELMO_CACHE_ROOT`, or `~/.cache/elmo_framework`.

    It need not be there yet.

    Raises:
        RunError: there is no home folder, of this user or of the one whom the variable names.
    """
    chosen = os.environ.get(_VARIABLE)
    try:
        return Path(chosen).expanduser() if chosen else Path.home() / ".cache" / "elmo_framework"
    except RuntimeError as error:
        reason = f"it is {chosen!r}, of a user who is not known" if chosen else "you have no home"
        raise RunError(
            f"set the environment variable {_VARIABLE} to the folder of the cache: {reason}"
        ) from error
