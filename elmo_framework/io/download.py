"""Files that are named by a URL: downloaded once, checked whenever they are used again."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from http.client import HTTPException, HTTPMessage, HTTPResponse
from pathlib import Path, PurePosixPath
from typing import IO
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from filelock import FileLock

from elmo_framework import console
from elmo_framework.console import ProgressBar, plural
from elmo_framework.errors import DataError
from elmo_framework.io.files import cache_root, digest, remove, write_text
from elmo_framework.io.process import variable

_OFFLINE, _MIRRORS = "ELMO_OFFLINE", "ELMO_MIRROR"
_CHUNK = 1 << 18
_CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")
_TIMEOUT = 60.0
"""Seconds without a byte."""


def is_url(place: str | Path) -> bool:
    """Tell whether a file is named by a URL that `local_file` can download."""
    return isinstance(place, str) and place.startswith(("http://", "https://"))


def local_path(place: str | Path) -> Path:
    """Return the path that `local_file` would return, and download nothing."""
    return cached_path(str(place)) if is_url(place) else Path(place)


def local_file(place: str | Path) -> Path:
    """Return the path of a file that is named by its path or by a URL.

    What a URL names is downloaded when it is first asked for, and an interrupted download goes on
    where it stopped. Its SHA-256 is written beside it then, and compared at every later use. With
    `ELMO_OFFLINE=1` nothing is downloaded. `ELMO_MIRROR` holds addresses such as
    `https://mirror.example/elmo`, separated by spaces: the path of the URL is looked for below
    each of them in turn, and then at the URL itself.

    Raises:
        DataError: the file cannot be downloaded, or has changed since it was.
    """
    path = local_path(place)
    if not is_url(place):
        return path
    url = str(place)
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(_beside(path, "lock")):
        if not path.exists():
            _download(url, path)
        _check(url, path)
    return path


@contextmanager
def offline() -> Iterator[None]:
    """Let nothing be downloaded meanwhile, by processes that are started meanwhile neither."""
    with variable(_OFFLINE, "1"):
        yield


def cached_path(url: str) -> Path:
    """Return where the file of a URL is kept, whether or not it is there."""
    name = PurePosixPath(urlsplit(url).path).name or "file"
    return cache_root() / "downloads" / f"{hashlib.sha256(url.encode()).hexdigest()[:12]}-{name}"


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(f"{path.name}.{suffix}")


def _check(url: str, path: Path) -> None:
    """Compare a file with its recorded SHA-256; record that of a file that has none."""
    record, found = _beside(path, "sha256"), digest([path])
    if not record.exists():
        write_text(record, f"{found}  {path.name}\n")
        console.info(f"{path}: from {url}; its SHA-256 {found} is recorded and will be checked")
        return
    recorded = record.read_text(encoding="utf-8", errors="replace").split()[:1]
    if recorded != [found]:
        raise DataError(
            f"the file has changed since it was downloaded from {url}: its SHA-256 was "
            f"{' '.join(recorded)!r} and is {found!r}; remove it and {record.name} to download it "
            "again",
            path=path,
        )


def _download(url: str, path: Path) -> None:
    if os.environ.get(_OFFLINE, "") not in ("", "0"):
        raise _no_file(url, path, [f"--offline or {_OFFLINE} is set, and it is not in the cache"])
    partial, failures = _beside(path, "partial"), list[str]()
    for place in _places(url):
        try:
            _fetch(place, partial)
        except (HTTPException, OSError) as error:
            where = "" if place == url else f"{place}: "
            failures.append(where + _reason(error))
            continue
        partial.replace(path)
        remove(_beside(partial, "version"))
        return
    raise _no_file(url, path, failures)


def _places(url: str) -> list[str]:
    """Return where a file is looked for: on each mirror, then at the URL itself."""
    mirrors = os.environ.get(_MIRRORS, "").split()
    return [*(mirror.rstrip("/") + urlsplit(url).path for mirror in mirrors), url]


def _fetch(url: str, partial: Path) -> None:
    """Download into `partial`; what it holds is kept if the server still has the same version."""
    version = _beside(partial, "version")
    try:
        response = _open(_request(url, partial, version))
    except HTTPError as error:
        if error.code != HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            raise
        error.close()
        # Nothing is missing, yet the last attempt ended before the file got its name.
        remove(partial)
        response = _open(Request(url))
    if _is_other_part(response, partial):
        response.close()
        remove(partial)
        response = _open(Request(url))
    with response:
        if response.status == HTTPStatus.PARTIAL_CONTENT:
            if _is_other_part(response, partial):
                raise HTTPException("the server gives another part of the file than was asked for")
            start = partial.stat().st_size
        else:
            start = 0
            remove(partial)
            write_text(version, f"{url}\n{_version(response)}")
        _append(response, partial, start)


def _request(url: str, partial: Path, version: Path) -> Request:
    request = Request(url)
    written = version.read_text(encoding="utf-8", errors="replace") if version.exists() else ""
    place, _, known = written.partition("\n")
    if place == url and known and partial.exists():
        request.add_header("Range", f"bytes={partial.stat().st_size}-")
        request.add_header("If-Range", known)
    return request


def _open(request: Request) -> HTTPResponse:
    response: HTTPResponse = build_opener(_Redirects).open(request, timeout=_TIMEOUT)
    return response


class _Redirects(HTTPRedirectHandler):
    """Follows no server from https to an address that others can read and change on the way."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        """Return the request that follows a redirect."""
        scheme = urlsplit(newurl).scheme
        if scheme not in ("https", req.type):
            fp.close()
            raise HTTPException(
                f"the server redirects from {req.type} to {newurl}, which is unsafe"
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _is_other_part(response: HTTPResponse, partial: Path) -> bool:
    """Tell whether a server gives a part that does not go on where `partial` ends."""
    if response.status != HTTPStatus.PARTIAL_CONTENT:
        return False
    size = partial.stat().st_size if partial.exists() else 0
    match = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
    if match is None:
        return True
    first, last, total = (int(number) for number in match.groups())
    return (first, last) != (size, total - 1) or response.length not in (None, total - size)


def _version(response: HTTPResponse) -> str:
    """Return what a server calls this version of a file; only a strong tag tells all apart."""
    tag: str = response.headers.get("ETag", "")
    return "" if tag.startswith("W/") else tag


def _append(response: HTTPResponse, partial: Path, start: int) -> None:
    total = None if response.length is None else start + response.length
    name = partial.name.removesuffix(".partial").partition("-")[2]
    with (
        partial.open("ab") as file,
        ProgressBar(f"downloading {name}", total=total, unit="byte") as progress,
    ):
        progress.advance(start)
        while chunk := response.read(_CHUNK):
            file.write(chunk)
            progress.advance(len(chunk))
        file.flush()
        os.fsync(file.fileno())
    size = partial.stat().st_size
    if total is not None and size != total:
        raise HTTPException(f"the connection ended after {size:,} of {plural(total, 'byte')}")


def _reason(error: Exception) -> str:
    """Say why a place gave no file."""
    if isinstance(error, HTTPError):
        error.close()
        return f"the server answers {error.code} {error.reason}"
    if isinstance(error, URLError):
        return f"no connection ({error.reason})"
    return f"{error}; run it again to go on"


def _no_file(url: str, path: Path, reasons: Sequence[str]) -> DataError:
    return DataError(
        f"{url}: not downloaded: {'; '.join(reasons)}. A file that you have already goes to {path}"
    )
