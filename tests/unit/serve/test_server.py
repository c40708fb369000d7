"""The process: its address, its token and its end."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from elmo_framework.commands.main import main
from elmo_framework.errors import DataError, RunError
from elmo_framework.serve.job import TOKEN_VARIABLE
from elmo_framework.serve.server import allowed_hosts, listening_socket, read_token
from tests.served_runs import RUNS, CannedRun, canned_server, running

pytest.importorskip("uvicorn")


def test_a_token_is_read_from_a_file_or_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
    assert read_token(None) is None
    monkeypatch.setenv(TOKEN_VARIABLE, "of-the-environment")
    (tmp_path / "token").write_text("of-a-file\n")
    assert (read_token(None), read_token(tmp_path / "token")) == ("of-the-environment", "of-a-file")
    for text in ("", "two words", "ümlaut", "line\nend"):
        (tmp_path / "token").write_text(text)
        with pytest.raises(RunError, match="visible ASCII characters"):
            read_token(tmp_path / "token")
    with pytest.raises(DataError, match="cannot be read"):
        read_token(tmp_path / "missing")
    with pytest.raises(DataError, match=r"No such file or directory. Did you mean '.*token'\?"):
        read_token(tmp_path / "tokn")


def test_without_a_token_only_this_machine_may_ask() -> None:
    with listening_socket("0.0.0.0", 0) as open_to_all:
        with pytest.raises(RunError, match="other machines can reach it; set a token"):
            allowed_hosts("0.0.0.0", open_to_all, None)
        assert allowed_hosts("0.0.0.0", open_to_all, "secret") is None
    with listening_socket("127.0.0.1", 0) as listener:
        assert "127.0.0.1" in (allowed_hosts("127.0.0.1", listener, None) or ())


def test_answers_do_not_wait_for_acknowledgments() -> None:
    with listening_socket("127.0.0.1", 0) as listener:
        listener.listen()
        with socket.create_connection(listener.getsockname()):
            accepted, _ = listener.accept()
            with accepted:
                assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_bad_address_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with listening_socket("127.0.0.1", 0) as taken:
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["serve", "runs/missing", "--port", str(port)]) == 2
    assert f"--port {port}: Address already in use" in capsys.readouterr().err
    for port in "70000", "-1":
        assert main(["serve", "runs/missing", "--port", port]) == 2
        expected = f"error: --port {port}: expected a number from 0 to 65535\n"
        assert capsys.readouterr().err == expected
    assert main(["serve", "runs/missing", "--host", "no such host"]) == 2
    assert main(["serve", "minni", "--port", "0"]) == 2
    errors = capsys.readouterr().err.splitlines()
    assert errors.pop(1) == "loading minni"
    assert [line.startswith("error: ") for line in errors] == [True] * 2
    assert "minni: neither a folder, an archive" in errors[-1]
    assert "Did you mean 'mini'?" in errors[-1]


def test_a_silent_connection_is_closed() -> None:
    server = canned_server()
    object.__setattr__(server.job, "timeout", 0.05)
    with running(server) as url:
        host, port = url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=10) as client:
            client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n")  # and no end of the headers
            assert client.recv(100) == b""
        with socket.create_connection((host, int(port)), timeout=10) as client:
            client.sendall(f"GET /health HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            assert client.recv(10_000).startswith(b"HTTP/1.1 200")
            client.sendall(b"GET / HTTP/1.1\r\n")  # the second request of the connection
            while client.recv(10_000):
                pass


def _slow(self: CannedRun, inputs: Any) -> list[dict[str, Any]]:
    Path(os.environ["STARTED"]).touch()
    time.sleep(float(os.environ.get("SECONDS", "0.5")))
    return [{} for _ in inputs]


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Any, str]]:
    """The process of the command with a run that takes half a second, and its URL."""
    monkeypatch.setenv("STARTED", str(tmp_path / "started"))
    monkeypatch.setattr(CannedRun, "compute", _slow)
    monkeypatch.setattr("elmo_framework.serve.server.served_run", lambda path, job: RUNS[0])

    def work() -> None:
        descriptor = os.open(tmp_path / "output", os.O_WRONLY | os.O_CREAT)
        sys.stdout = sys.stderr = os.fdopen(descriptor, "w", buffering=1)
        code = main(["serve", str(tmp_path / "ner"), "--port", "0"])
        sys.stdout.flush()
        os._exit(code)

    process = multiprocessing.get_context("fork").Process(target=work, daemon=True)
    process.start()
    until = time.monotonic() + 60
    while "http://" not in (text := _text(tmp_path / "output")) or not text.endswith("\n"):
        assert process.is_alive(), text
        assert time.monotonic() < until
        time.sleep(0.02)
    yield process, text.split()[-1]
    process.kill()
    process.join()


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def test_sigterm_finishes_what_was_accepted(started: tuple[Any, str], tmp_path: Path) -> None:
    process, url = started
    answers: list[Any] = []

    def ask() -> None:
        headers = {"Content-Type": "application/json"}
        request = Request(f"{url}/predict", b'{"inputs": ["a"]}', headers)
        with urlopen(request, timeout=60) as answer:
            answers.append(json.load(answer))

    asking = threading.Thread(target=ask)
    asking.start()
    while not (tmp_path / "started").exists():
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGTERM)
    asking.join(60)
    process.join(60)
    assert answers == [{"run": "ner", "predictions": [{}]}]
    assert process.exitcode == 0
    assert _text(tmp_path / "output").endswith("stopped\n")
    with pytest.raises(OSError, match="refused"):
        urlopen(f"{url}/health", timeout=10)


def test_a_second_interrupt_ends_it_at_once(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    monkeypatch.setenv("SECONDS", "120")
    process, url = request.getfixturevalue("started")
    host, port = url.removeprefix("http://").split(":")
    body = b'{"inputs": ["a"]}'
    head = f"POST /predict HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(body)}\r\n"
    with socket.create_connection((host, int(port)), timeout=60) as client:
        client.sendall(f"{head}Content-Type: application/json\r\n\r\n".encode() + body)
        while not (tmp_path / "started").exists():
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGINT)
        with suppress(OSError):
            while True:  # until it accepts nothing more
                urlopen(f"{url}/health", timeout=10).close()
        os.kill(process.pid, signal.SIGINT)
        process.join(60)
    assert process.exitcode == 0
    assert _text(tmp_path / "output").endswith("stopped\n")
