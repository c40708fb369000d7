import hashlib
import io
import os
import pwd
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.request import HTTPSHandler, Request
from urllib.response import addinfourl

import pytest

from elmo_framework.errors import DataError, RunError
from elmo_framework.io.download import cached_path, local_file, offline
from elmo_framework.io.files import cache_root

CONTENT = bytes(range(256)) * 4000


class Server(ThreadingHTTPServer):
    """Serves `content`, and breaks off after `limit` bytes of an answer.

    Where `length` is set it stands for the true length of an answer, and `range_start` for the byte
    that a part was asked to begin with.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.content, self.etag, self.limit = CONTENT, '"one"', len(CONTENT)
        self.ranges: list[str | None] = []
        self.paths: list[str] = []
        self.length: str | None = None
        self.range_start: int | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/models/weights.hdf5"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        held, wanted = self.server, self.headers["Range"]
        held.ranges.append(wanted)
        held.paths.append(self.path)
        start = 0
        if wanted and self.headers["If-Range"] == held.etag:
            start = int(wanted.removeprefix("bytes=").rstrip("-"))
        if "missing" in self.path or (wanted and start >= len(held.content)):
            self.send_error(404 if "missing" in self.path else 416)
            return
        length = str(len(held.content) - start)
        if start and held.range_start is not None:
            start = held.range_start
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", held.length or length)
        if start:
            last = len(held.content) - 1
            self.send_header("Content-Range", f"bytes {start}-{last}/{last + 1}")
        if held.etag:
            self.send_header("ETag", held.etag)
        self.end_headers()
        self.wfile.write(held.content[start : start + held.limit])

    def do_HEAD(self) -> None:
        code = 404 if "missing" in self.path else 405 if "no_head" in self.path else 200
        self.send_response(code)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving() -> Iterator[Server]:
    with Server() as held:
        thread = threading.Thread(target=held.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield held
        held.shutdown()
        thread.join()


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("ELMO_CACHE_ROOT", str(tmp_path / "cache"))
    for name in ("ELMO_OFFLINE", "ELMO_MIRROR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("no_proxy", "*")
    with serving() as held:
        yield held


def stop_in_the_middle(server: Server) -> None:
    server.limit = 300_000
    with pytest.raises(DataError, match="the connection ended after 300,000 of 1,024,000 bytes"):
        local_file(server.url)
    server.limit = len(CONTENT)


def test_environment_variable_sets_the_cache_root(monkeypatch) -> None:
    monkeypatch.setenv("ELMO_CACHE_ROOT", "/some/where")
    assert cache_root() == Path("/some/where")
    monkeypatch.delenv("ELMO_CACHE_ROOT")
    assert cache_root() == Path.home() / ".cache" / "elmo_framework"


def test_a_path_is_taken_as_it_is() -> None:
    assert local_file("some/options.json") == Path("some/options.json")


def test_a_url_is_downloaded_once_and_its_sum_recorded(server: Server, capsys) -> None:
    path = local_file(server.url)
    assert path.read_bytes() == CONTENT
    assert path.parent == cache_root() / "downloads"
    assert path.name.endswith("-weights.hdf5")
    found = hashlib.sha256(CONTENT).hexdigest()
    record = path.with_name(f"{path.name}.sha256")
    assert record.read_text() == f"{found}  {path.name}\n"
    shown = capsys.readouterr().err
    assert "downloading weights.hdf5: 1,024,000 bytes" in shown
    assert f"{path}: from {server.url}; its SHA-256 {found} is recorded" in shown
    assert local_file(server.url) == path
    assert server.ranges == [None]
    assert capsys.readouterr().err == ""
    assert not list(path.parent.glob("*.partial"))
    assert not list(path.parent.glob("*.version"))


def test_interrupted_download_resumes_at_the_same_byte(server: Server) -> None:
    stop_in_the_middle(server)
    assert local_file(server.url).read_bytes() == CONTENT
    assert server.ranges == [None, "bytes=300000-"]


def test_file_changed_on_the_server_is_downloaded_again(server: Server) -> None:
    stop_in_the_middle(server)
    server.content, server.etag = CONTENT[::-1], '"two"'
    assert local_file(server.url).read_bytes() == CONTENT[::-1]


@pytest.mark.parametrize("tag", ["", 'W/"one"'])
def test_without_a_version_nothing_is_pieced_together(server: Server, tag: str) -> None:
    server.etag = tag
    stop_in_the_middle(server)
    assert local_file(server.url).read_bytes() == CONTENT
    assert server.ranges == [None, None]


def test_a_complete_download_without_its_name_is_made_again(server: Server) -> None:
    path = local_file(server.url)
    path.rename(path.with_name(f"{path.name}.partial"))
    path.with_name(f"{path.name}.partial.version").write_text(f"{server.url}\n{server.etag}")
    assert local_file(server.url).read_bytes() == CONTENT
    assert server.ranges == [None, f"bytes={len(CONTENT)}-", None]


def test_changed_download_is_refused(server: Server) -> None:
    path = local_file(server.url)
    path.write_bytes(b"other")
    with pytest.raises(DataError) as caught:
        local_file(server.url)
    old, new = (hashlib.sha256(content).hexdigest() for content in (CONTENT, b"other"))
    assert str(caught.value) == (
        f"{path}: the file has changed since it was downloaded from {server.url}: its SHA-256 "
        f"was {old!r} and is {new!r}; remove it and {path.name}.sha256 to download it again"
    )


def test_a_file_put_there_by_hand_is_taken(server: Server) -> None:
    path = cached_path(server.url)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"by hand")
    assert local_file(server.url).read_bytes() == b"by hand"
    assert server.ranges == []


def test_error_shows_the_answer_of_the_server(server: Server) -> None:
    url = f"{server.url}.missing"
    with pytest.raises(DataError) as caught:
        local_file(url)
    assert str(caught.value) == (
        f"{url}: not downloaded: the server answered 404 Not Found. "
        f"If you already have the file, copy it to {cached_path(url)}"
    )


def test_no_server_is_an_error_that_names_the_url(server: Server) -> None:
    url = "http://127.0.0.1:9/options.json"
    with pytest.raises(DataError) as caught:
        local_file(url)
    assert str(caught.value).startswith(f"{url}: not downloaded: connection failed (")


def test_letters_that_a_url_cannot_have_are_encoded(server: Server) -> None:
    url = server.url.replace("weights", "süße weights?ß=%41&b#c")
    assert local_file(url).read_bytes() == CONTENT
    assert server.paths == ["/models/s%C3%BC%C3%9Fe%20weights?%C3%9F=%41&b"]


@pytest.mark.parametrize(
    ("url", "reason"),
    [("http://[bad/a", "not a valid URL"), (f"http://{64 * 'a'}.b/a", "not downloaded: encoding")],
)
def test_invalid_url_is_an_error(url: str, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        local_file(url)


def test_offline_uses_only_cached_files(server: Server, monkeypatch) -> None:
    path = local_file(server.url)
    monkeypatch.setenv("ELMO_OFFLINE", "1")
    assert local_file(server.url) == path
    other = f"{server.url}.other"
    with pytest.raises(DataError) as caught:
        local_file(other)
    assert str(caught.value) == (
        f"{other}: not downloaded: --offline or ELMO_OFFLINE is set, and it is not in the cache. "
        f"If you already have the file, copy it to {cached_path(other)}"
    )
    assert server.ranges == [None]


def test_offline_holds_for_a_while(monkeypatch) -> None:
    for before in ("0", None):
        if before is None:
            monkeypatch.delenv("ELMO_OFFLINE")
        else:
            monkeypatch.setenv("ELMO_OFFLINE", before)
        with offline():
            assert os.environ["ELMO_OFFLINE"] == "1"
        assert os.environ.get("ELMO_OFFLINE") == before


def test_mirrors_are_asked_in_turn_before_the_address_itself(server: Server, monkeypatch) -> None:
    with serving() as mirror:
        base = f"http://127.0.0.1:{mirror.server_port}"
        monkeypatch.setenv("ELMO_MIRROR", f"{base}/missing {base}/elmo/")
        path = local_file(server.url)
    assert path == cached_path(server.url)
    assert mirror.paths == ["/missing/models/weights.hdf5", "/elmo/models/weights.hdf5"]
    assert server.paths == []


def test_where_no_mirror_has_a_file_its_own_address_is_asked(server: Server, monkeypatch) -> None:
    with serving() as mirror:
        monkeypatch.setenv("ELMO_MIRROR", f"http://127.0.0.1:{mirror.server_port}/missing")
        assert local_file(server.url).read_bytes() == CONTENT
    assert server.paths == ["/models/weights.hdf5"]


def test_error_lists_all_mirrors_and_the_url(server: Server, monkeypatch) -> None:
    base, url = f"http://127.0.0.1:{server.server_port}/mirror", f"{server.url}.missing"
    monkeypatch.setenv("ELMO_MIRROR", base)
    with pytest.raises(DataError) as caught:
        local_file(url)
    assert str(caught.value) == (
        f"{url}: not downloaded: {base}/models/weights.hdf5.missing: the server answered 404 Not "
        "Found; the server answered 404 Not Found. "
        f"If you already have the file, copy it to {cached_path(url)}"
    )


def test_download_never_resumes_from_another_server(server: Server, monkeypatch) -> None:
    stop_in_the_middle(server)
    with serving() as mirror:
        mirror.content = CONTENT[::-1]
        monkeypatch.setenv("ELMO_MIRROR", f"http://127.0.0.1:{mirror.server_port}")
        assert local_file(server.url).read_bytes() == CONTENT[::-1]
    assert mirror.ranges == [None]


def test_concurrent_requests_download_once(server: Server) -> None:
    threads = [threading.Thread(target=local_file, args=[server.url]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert server.ranges == [None]


@pytest.mark.parametrize("start", [1, 299_999, 300_001])
def test_a_part_that_begins_elsewhere_is_not_appended(server: Server, start: int) -> None:
    stop_in_the_middle(server)
    server.range_start = start
    assert local_file(server.url).read_bytes() == CONTENT
    assert server.ranges == [None, "bytes=300000-", None]


def test_unrequested_part_is_refused(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    def give_part(handler: Handler) -> None:
        handler.send_response(206)
        handler.send_header("Content-Range", "bytes 5-9/10")
        handler.send_header("Content-Length", "5")
        handler.end_headers()
        handler.wfile.write(b"12345")

    monkeypatch.setattr(Handler, "do_GET", give_part)
    with pytest.raises(DataError, match="another part of the file than was requested"):
        local_file(server.url)
    assert not cached_path(server.url).exists()


def test_file_shorter_than_its_length_is_refused(server: Server) -> None:
    server.length = str(len(CONTENT) + 5)
    with pytest.raises(DataError, match="ended after 1,024,000 of 1,024,005 bytes"):
        local_file(server.url)
    assert not cached_path(server.url).exists()


def test_invalid_content_length_is_ignored(server: Server) -> None:
    server.length = "many"
    assert local_file(server.url).read_bytes() == CONTENT


def redirected(server: Server, monkeypatch: pytest.MonkeyPatch, address: str) -> str:
    """Let an address of https answer that its file is elsewhere; return what is said of that."""

    def answer(handler: HTTPSHandler, request: Request) -> addinfourl:
        headers = Message()
        headers["Location"] = address
        response = addinfourl(io.BytesIO(), headers, request.full_url, 302)
        response.msg = "Found"  # type: ignore[attr-defined]
        return response

    monkeypatch.setattr(HTTPSHandler, "https_open", answer)
    with pytest.raises(DataError) as caught:
        local_file("https://models.example/weights.hdf5")
    return str(caught.value)


@pytest.mark.parametrize("scheme", ["http", "ftp"])
def test_redirect_from_https_to_http_is_refused(
    server: Server, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    address = server.url.replace("http", scheme)
    said = redirected(server, monkeypatch, address)
    assert f"the server redirects from https to {address}, which is unsafe" in said
    assert server.paths == []


def test_a_redirect_within_http_is_followed(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = Handler.do_GET

    def redirect(handler: Handler) -> None:
        if "moved" in handler.path:
            answer(handler)
            return
        handler.send_response(302)
        handler.send_header("Location", f"{server.url}-moved")
        handler.end_headers()

    monkeypatch.setattr(Handler, "do_GET", redirect)
    assert local_file(server.url).read_bytes() == CONTENT


def no_home(patch: pytest.MonkeyPatch) -> None:
    def unknown(_: object) -> None:
        raise KeyError("no such user")

    patch.delenv("HOME", raising=False)
    patch.setattr(pwd, "getpwuid", unknown)


def test_without_a_home_folder_the_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ELMO_CACHE_ROOT")
    no_home(monkeypatch)
    with pytest.raises(RunError) as caught:
        cache_root()
    expected = "set the environment variable ELMO_CACHE_ROOT to the folder of the cache: you have"
    assert str(caught.value).startswith(expected)


def test_an_unknown_user_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELMO_CACHE_ROOT", "~no-such-user/x")
    with pytest.raises(RunError, match=r"it is '~no-such-user/x', of an unknown user$"):
        cache_root()
