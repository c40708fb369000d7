"""Text by URL: a path whose file is copied into the cache when it is opened.

`http` and `https` are read by `download`, other protocols by fsspec; both are imported when they
are needed, since every command imports this module.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import partial
from glob import has_magic
from pathlib import Path, PosixPath, PurePosixPath
from typing import Any, NamedTuple, Self, final
from urllib.parse import unquote, urlsplit

from elmo_framework.console import ProgressBar
from elmo_framework.errors import DataError, ElmoFrameworkError, allowed
from elmo_framework.io.files import replacing, write_text
from elmo_framework.io.hub import hub_folder, is_hub_place

_REMOTE = re.compile(r"\(?[A-Za-z][A-Za-z0-9+.-]+://")
_INNER = re.compile(r"(.*)\(([^()]+)\)#(.+)", re.DOTALL)
_WEB = ("http://", "https://")
_CHUNK = 1 << 20


def as_path(text: str | Path) -> Path:
    """Return the path of a text: a `RemotePath` for `https://...`, `s3://...` or `(URL)#NAME`.

    Raises:
        DataError: a `file://` URL is not one of an absolute path on this computer.
    """
    if isinstance(text, Path):
        return text
    if text.startswith("file://"):
        url = urlsplit(text)
        if url.netloc not in ("", "localhost") or not url.path:
            raise DataError(f"{text}: not the URL of a local file; write file:///absolute/path")
        return Path(unquote(url.path))
    return _remote_path(text) if _REMOTE.match(text) else Path(text)


class ArchivePath(NamedTuple):
    """A file, and the name of a file inside it; None for the whole file."""

    file: Path
    inner: str | None


def archive_path(path: Path) -> ArchivePath:
    """Parse `(ARCHIVE)#NAME`.

    Text before the bracket is the folder of the archive, so that such a path can be made absolute
    like any other.
    """
    match = _INNER.fullmatch(str(path))
    if match is None:
        return ArchivePath(path, None)
    folder, archive, inner = match.groups()
    return ArchivePath(as_path(archive) if not folder else Path(folder) / archive, inner)


class RemotePath(PosixPath, ABC):
    """A URL in place of a path; `os.fspath` makes a local copy, so that every library can open it.

    All questions about the file raise a DataError if the server cannot be asked.

    Args:
        url: as the user wrote it; `str` returns it unchanged.
    """

    url = ""

    def __new__(cls, url: str) -> Self:
        path = super().__new__(cls, url)
        path.url = url
        return path

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.url,)

    def __str__(self) -> str:
        return self.url or super().__str__()

    @abstractmethod
    def __fspath__(self) -> str: ...

    def __truediv__(self, key: Any) -> Path:  # type: ignore[override]
        return _remote_path(f"{self.url.rstrip('/')}/{key}")

    def with_segments(self, *segments: Any) -> Path:
        """Return an ordinary path, of which only the name or the suffix is of use."""
        return Path(*segments)

    @property
    def name(self) -> str:
        """The last part of the URL, without a query."""
        return PurePosixPath(unquote(self._address())).name if self.url else super().name

    @property
    def parent(self) -> RemotePath:
        return _remote_path(self.url.rstrip("/").rpartition("/")[0])

    def absolute(self) -> RemotePath:
        return self

    def problem(self) -> str:
        """Return why nothing can be read; empty if a file, a folder or a match exists."""
        try:
            return self._problem()
        except ElmoFrameworkError as error:
            return str(error).removeprefix(f"{self.url}: ")

    def exists(self, *, follow_symlinks: bool = True) -> bool:
        return not self.problem()

    def matches(self) -> Iterator[RemotePath]:
        """Yield the files and folders that match the URL as a pattern."""
        return iter(())

    def _address(self) -> str:
        return self.url

    @abstractmethod
    def _problem(self) -> str: ...


@final
class WebPath(RemotePath):
    """A file of `http` or `https`, downloaded once; there are neither folders nor patterns."""

    def __fspath__(self) -> str:
        from elmo_framework.io.download import local_file

        return str(local_file(self.url))

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        return self.exists()

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        return False

    def _address(self) -> str:
        return urlsplit(self.url).path

    def _problem(self) -> str:
        from elmo_framework.io.download import why_unreachable

        return why_unreachable(self.url)


@final
class HubPath(RemotePath):
    """`hf://OWNER/NAME[@REVISION]`: a folder, whose files are downloaded together (`io/hub.py`)."""

    def __fspath__(self) -> str:
        return str(hub_folder(self.url))

    def __truediv__(self, key: Any) -> Path:  # type: ignore[override]
        return Path(hub_folder(self.url), key)

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        return False

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        return self.exists()

    def _problem(self) -> str:
        hub_folder(self.url)
        return ""


@final
class FilesystemPath(RemotePath):
    """A file, a folder or a pattern of another protocol, read by fsspec.

    The copy of a file is renewed when the file has changed, as far as its metadata show.
    """

    def __fspath__(self) -> str:
        return str(_copy(self.url))

    def exists(self, *, follow_symlinks: bool = True) -> bool:
        return self._ask("exists")

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        return self._ask("isfile")

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        return self._ask("isdir")

    def iterdir(self) -> Generator[RemotePath, None, None]:  # type: ignore[override]
        yield from self._listed("ls", detail=False)

    def matches(self) -> Iterator[RemotePath]:
        if has_magic(self.url):
            yield from self._listed("glob")

    def _problem(self) -> str:
        if self.exists() or any(self.matches()):
            return ""
        return "no file matches" if has_magic(self.url) else "it does not exist"

    def _ask(self, question: str) -> bool:
        with _filesystem(self.url) as (filesystem, place):
            return bool(getattr(filesystem, question)(place))

    def _listed(self, command: str, **options: Any) -> Iterator[RemotePath]:
        with _filesystem(self.url) as (filesystem, place):
            names = getattr(filesystem, command)(place, **options)
            urls = [filesystem.unstrip_protocol(name) for name in names]
        return map(_remote_path, urls)


def _remote_path(url: str) -> RemotePath:
    if is_hub_place(url):
        return HubPath(url)
    return WebPath(url) if url.startswith(_WEB) else FilesystemPath(url)


def _copy(url: str) -> Path:
    """Copy a file of a protocol other than `http` into the cache, unless the copy is current."""
    from filelock import FileLock

    from elmo_framework.io.download import OFFLINE_REASON, cached_path, is_offline

    path = cached_path(url)
    version = path.with_name(f"{path.name}.version")
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_name(f"{path.name}.lock")):
        if is_offline():
            if not path.exists():
                raise DataError(f"{url}: not copied: {OFFLINE_REASON}")
            return path
        with _filesystem(url) as (filesystem, place):
            current = filesystem.ukey(place)
            before = version.read_text(encoding="utf-8") if version.exists() else ""
            if before != current or not path.exists():
                version.unlink(missing_ok=True)
                _transfer(filesystem, place, path)
                write_text(version, current)
    return path


def _transfer(filesystem: Any, place: str, path: Path) -> None:
    with (
        replacing(path) as aside,
        filesystem.open(place, "rb") as source,
        aside.open("wb") as file,
        ProgressBar(
            f"copying {PurePosixPath(place).name}", total=filesystem.size(place), unit="byte"
        ) as progress,
    ):
        for chunk in iter(partial(source.read, _CHUNK), b""):
            file.write(chunk)
            progress.advance(len(chunk))


@contextmanager
def _filesystem(url: str) -> Iterator[tuple[Any, str]]:
    """Yield the file system of a URL and the path in it.

    Raises:
        DataError: the protocol is unknown, its driver is not installed, or the server refuses;
            also inside the `with`.
    """
    import fsspec  # type: ignore[import-untyped]

    protocol = url.partition("://")[0]
    if protocol not in fsspec.available_protocols():
        choices = allowed(protocol, fsspec.available_protocols())
        raise DataError(f"{url}: unknown protocol {protocol!r}; {choices}")
    try:
        yield fsspec.core.url_to_fs(url)
    except ImportError as error:
        raise DataError(f"{url}: the driver of {protocol}:// is not installed: {error}") from error
    except DataError:
        raise
    except Exception as error:  # each driver has its own
        reason = str(error) or type(error).__name__
        raise DataError(f"{url}: cannot be read: {reason}") from error
