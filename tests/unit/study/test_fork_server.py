"""The process that workers are forked from."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from elmo_framework.errors import RunError
from elmo_framework.study.fork_server import ForkServer, WorkerEnd

_SECONDS = 300.0


def wait_for_signal(pipe: int) -> None:
    """Write the id of this process to a pipe, and wait to be ended."""
    os.write(pipe, f"{os.getpid():08}".encode())
    signal.pause()


@dataclass
class Waiting:
    """A server with a worker that waits for a signal.

    Attributes:
        server: of the worker.
        reader: reads the end of the pipe when neither the server nor a worker is left.
        writer: of the pipe, in the processes of the server.
        worker: its process.
    """

    server: ForkServer
    reader: int
    writer: int
    worker: int = 0

    def start(self, key: str) -> None:
        self.server.start(key, self.writer)
        self.worker = int(os.read(self.reader, 8))


@pytest.fixture
def waiting() -> Iterator[Waiting]:
    reader, writer = os.pipe()
    server = ForkServer(wait_for_signal)
    os.close(writer)
    waiting = Waiting(server, reader, writer)
    waiting.start("a")
    yield waiting
    server.close()
    os.close(reader)


def test_worker_ends_with_its_code() -> None:
    server = ForkServer(sys.exit)
    for key, code in (("a", 3), ("b", 0)):
        server.start(key, code)
        assert list(server.ends(_SECONDS)) == [WorkerEnd(key, code)]
    server.close()


def test_signal_reaches_all_workers(waiting: Waiting) -> None:
    waiting.start("b")
    waiting.server.signal(signal.SIGTERM)
    ends: set[WorkerEnd] = set()
    while len(ends) < 2:
        ends |= set(waiting.server.ends(_SECONDS))
    assert ends == {WorkerEnd("a", -signal.SIGTERM), WorkerEnd("b", -signal.SIGTERM)}


def test_closed_server_leaves_no_process(waiting: Waiting) -> None:
    waiting.server.close()
    assert os.read(waiting.reader, 1) == b""
    with pytest.raises(ProcessLookupError):
        os.kill(waiting.worker, 0)


def test_workers_end_when_their_server_is_killed(waiting: Waiting) -> None:
    assert waiting.server.pid is not None
    os.kill(waiting.server.pid, signal.SIGKILL)
    assert os.read(waiting.reader, 1) == b""
    with pytest.raises(RunError, match="Run the same command again to resume"):
        list(waiting.server.ends(_SECONDS))
    with pytest.raises(RunError, match="has been killed"):
        waiting.server.start("b", 0)


def test_workers_end_when_the_study_is_killed(waiting: Waiting) -> None:
    waiting.server._connection.close()  # as the system does
    assert os.read(waiting.reader, 1) == b""


def test_signals_for_the_study_do_not_end_its_server(waiting: Waiting) -> None:
    assert waiting.server.pid is not None
    for number in (signal.SIGINT, signal.SIGTERM):
        os.kill(waiting.server.pid, number)
    waiting.start("b")
    os.kill(waiting.worker, signal.SIGINT)
    assert list(waiting.server.ends(_SECONDS)) == [WorkerEnd("b", 1)]  # by KeyboardInterrupt
