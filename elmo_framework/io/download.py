"""Download files by URL into the cache, and verify their SHA-256 at every use."""

from __future__ import annotations

import hashlib
import os
import re
import string
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from http.client import HTTPException, HTTPMessage, HTTPResponse
from pathlib import Path, PurePosixPath
from typing import IO
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
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
_FAILURES = (HTTPException, OSError, UnicodeError)
"""What urllib raises; UnicodeError is for names of hosts that are too long."""

_TIMEOUT = 60.0
"""Seconds without a byte."""

OFFLINE_REASON = f"--offline or {_OFFLINE} is set, and it is not in the cache"
_NO_HEAD = (HTTPStatus.FORBIDDEN, HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.NOT_IMPLEMENTED)
"""Answers of servers that may still answer the request that reads the file."""


def is_url(source: str | Path) -> bool:
    """Return whether `source` is an http(s) URL."""
    return isinstance(source, str) and source.startswith(("http://", "https://"))


def local_path(source: str | Path) -> Path:
    """Return the path that `local_file` would return, without downloading."""
    return cached_path(str(source)) if is_url(source) else Path(source)


def local_file(source: str | Path) -> Path:
    """Return the local path of a file; a URL is downloaded at its first use.

    An interrupted download resumes at the same byte. The SHA-256 of a download is stored next to
    it and verified at every later use. With `ELMO_OFFLINE=1` nothing is downloaded. `ELMO_MIRROR`
    lists base addresses such as `https://mirror.example/elmo`, separated by spaces: the path of
    the URL is tried below each of them in turn, then the URL itself.

    Raises:
        DataError: the file cannot be downloaded, or has changed since its download.
    """
    path = local_path(source)
    if not is_url(source):
        return path
    url = str(source)
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(_sibling(path, "lock")):
        if not path.exists():
            _download(url, path)
        _check(url, path)
    return path


def is_offline() -> bool:
    """Return whether downloads are forbidden."""
    return os.environ.get(_OFFLINE, "") not in ("", "0")


def why_unreachable(url: str) -> str:
    """Return why a file cannot be downloaded, or the empty string if it is there, or in the cache.

    Nothing is downloaded. A server that does not answer this request may still have the file.
    """
    if cached_path(url).exists():
        return ""
    reason = OFFLINE_REASON if is_offline() else ""
    for address in () if reason else _addresses(url):
        try:
            _open(Request(address, method="HEAD")).close()
        except _FAILURES as error:
            is_refused = isinstance(error, HTTPError) and error.code in _NO_HEAD
            reason = _reason(error)
            if is_refused:
                return ""
        else:
            return ""
    return reason


@contextmanager
def offline() -> Iterator[None]:
    """Forbid downloads in this process and in processes started meanwhile."""
    with variable(_OFFLINE, "1"):
        yield


def cached_path(url: str) -> Path:
    """Return the path in the cache for a URL; the file need not exist.

    Raises:
        DataError: the URL is not valid.
    """
    try:
        name = PurePosixPath(urlsplit(url).path).name or "file"
    except ValueError as error:
        raise DataError(f"{url}: not a valid URL ({error})") from error
    return cache_root() / "downloads" / f"{hashlib.sha256(url.encode()).hexdigest()[:12]}-{name}"


def _sibling(path: Path, suffix: str) -> Path:
    return path.with_name(f"{path.name}.{suffix}")


def _check(url: str, path: Path) -> None:
    """Compare a file with its recorded SHA-256, or record it the first time."""
    record, sha256 = _sibling(path, "sha256"), digest([path])
    if not record.exists():
        write_text(record, f"{sha256}  {path.name}\n")
        console.info(f"{path}: from {url}; its SHA-256 {sha256} is recorded and will be checked")
        return
    recorded = record.read_text(encoding="utf-8", errors="replace").split()[:1]
    if recorded != [sha256]:
        raise DataError(
            f"the file has changed since it was downloaded from {url}: its SHA-256 was "
            f"{' '.join(recorded)!r} and is {sha256!r}; remove it and {record.name} to download "
            "it again",
            path=path,
        )


def _download(url: str, path: Path) -> None:
    if is_offline():
        raise _no_file(url, path, [OFFLINE_REASON])
    partial, failures = _sibling(path, "partial"), list[str]()
    for address in _addresses(url):
        try:
            _fetch(address, partial)
        except _FAILURES as error:
            where = "" if address == url else f"{address}: "
            failures.append(where + _reason(error))
            continue
        partial.replace(path)
        remove(_sibling(partial, "version"))
        return
    raise _no_file(url, path, failures)


def _addresses(url: str) -> list[str]:
    """Return where a file may be: below each mirror, and at its URL."""
    mirrors = os.environ.get(_MIRRORS, "").split()
    mirrored = [mirror.rstrip("/") + urlsplit(url).path for mirror in mirrors]
    return [_quoted(address) for address in (*mirrored, url)]


def _quoted(url: str) -> str:
    """Percent-encode letters and spaces that a URL may not contain, as browsers do."""
    host = re.match(r"\w+://[^/?#]*", url)
    end = 0 if host is None else host.end()
    return url[:end] + quote(url[end:], safe=string.punctuation)


def _fetch(url: str, partial: Path) -> None:
    """Download into `partial`, resuming if the server still has the same version."""
    version = _sibling(partial, "version")
    try:
        response = _open(_request(url, partial, version))
    except HTTPError as error:
        if error.code != HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            raise
        error.close()
        # The last attempt was complete but ended before the file was renamed.
        remove(partial)
        response = _open(Request(url))
    if _is_other_part(response, partial):
        response.close()
        remove(partial)
        response = _open(Request(url))
    with response:
        if response.status == HTTPStatus.PARTIAL_CONTENT:
            if _is_other_part(response, partial):
                raise HTTPException("the server sent another part of the file than was requested")
            start = partial.stat().st_size
        else:
            start = 0
            remove(partial)
            write_text(version, f"{url}\n{_version(response)}")
        _append(response, partial, start)


def _request(url: str, partial: Path, version: Path) -> Request:
    request = Request(url)
    written = version.read_text(encoding="utf-8", errors="replace") if version.exists() else ""
    origin, _, tag = written.partition("\n")
    if origin == url and tag and partial.exists():
        request.add_header("Range", f"bytes={partial.stat().st_size}-")
        request.add_header("If-Range", tag)
    return request


def _open(request: Request) -> HTTPResponse:
    response: HTTPResponse = build_opener(_Redirects).open(request, timeout=_TIMEOUT)
    return response


class _Redirects(HTTPRedirectHandler):
    """Refuses redirects from https to http, which could be read or changed on the way."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        scheme = urlsplit(newurl).scheme
        if scheme not in ("https", req.type):
            fp.close()
            raise HTTPException(
                f"the server redirects from {req.type} to {newurl}, which is unsafe"
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _is_other_part(response: HTTPResponse, partial: Path) -> bool:
    """Return whether a partial response does not continue where `partial` ends."""
    if response.status != HTTPStatus.PARTIAL_CONTENT:
        return False
    size = partial.stat().st_size if partial.exists() else 0
    match = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
    if match is None:
        return True
    first, last, total = (int(number) for number in match.groups())
    return (first, last) != (size, total - 1) or response.length not in (None, total - size)


def _version(response: HTTPResponse) -> str:
    """Return the ETag; a weak one does not guarantee identical bytes, so it is dropped."""
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
    if isinstance(error, HTTPError):
        error.close()
        return f"the server answered {error.code} {error.reason}"
    if isinstance(error, URLError):
        return f"connection failed ({error.reason})"
    return f"{error}; run the command again to resume"


def _no_file(url: str, path: Path, reasons: Sequence[str]) -> DataError:
    return DataError(
        f"{url}: not downloaded: {'; '.join(reasons)}. If you already have the file, copy it to "
        f"{path}"
    )
