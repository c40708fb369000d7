"""A process that workers are forked from, which has imported everything already."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, final

from elmo_framework.errors import RunError
from elmo_framework.io.files import IS_WINDOWS
from elmo_framework.io.process import SIGNALS_TO_STOP, end_with_parent

if TYPE_CHECKING:
    from multiprocessing.context import ForkProcess

STOP_TIMEOUT = 60.0
"""Seconds to save a checkpoint; a worker that takes longer is killed."""

Work: TypeAlias = Callable[[Any], None]

_SIGNALS = SIGNALS_TO_STOP if IS_WINDOWS else (*SIGNALS_TO_STOP, signal.SIGUSR2)


@dataclass(frozen=True)
class WorkerEnd:
    """The end of a worker: the key that it was started with, and its exit code, as of `Process`."""

    key: str
    exit_code: int


@final
class ForkServer:
    """Starts workers, each in a process of its own, which share what is imported now.

    The server is forked from this process, so that nothing is imported twice. Create it early:
    threads of this process do not exist in the server. The forkserver of `multiprocessing` would
    import everything again. Workers whose server or whose starting process is gone get SIGTERM, so
    that they save a checkpoint.

    Args:
        work: called in each worker with the argument of `start`; it exits with a code.

    Raises:
        RunError: the system cannot fork.
    """

    def __init__(self, work: Work) -> None:
        if IS_WINDOWS:
            raise RunError("a study forks processes, which Windows cannot; run it in WSL")
        context = multiprocessing.get_context("fork")
        self._connection, connection = context.Pipe()
        self._process = context.Process(target=_serve, args=(connection, self._connection, work))
        _start(self._process)
        connection.close()

    @property
    def pid(self) -> int | None:
        """The process id of the server."""
        return self._process.pid

    def start(self, key: str, argument: Any) -> None:
        """Start a worker.

        Args:
            key: identifies the worker.
            argument: of `work`; it is pickled.

        Raises:
            RunError: somebody has killed the server.
        """
        self._send((key, argument))

    def ends(self, timeout: float) -> Iterator[WorkerEnd]:
        """Yield the workers that have ended; wait at most `timeout` seconds for the first.

        Raises:
            RunError: somebody has killed the server.
        """
        while self._connection.poll(timeout):
            try:
                yield self._connection.recv()
            except (EOFError, OSError):
                self._fail()
            timeout = 0.0

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to all workers.

        Raises:
            RunError: somebody has killed the server.
        """
        self._send(number)

    def close(self) -> None:
        """Kill the workers that run still; return when they and the server have ended."""
        with suppress(OSError):
            self._connection.send(signal.SIGKILL)
        self._connection.close()
        self._process.join()

    def _send(self, message: object) -> None:
        try:
            self._connection.send(message)
        except OSError:
            self._fail()

    def _fail(self) -> NoReturn:
        raise RunError(
            "the process that starts the runs has been killed; the runs save checkpoints. Run the "
            "same command again to resume"
        )


def _serve(connection: Connection[Any, Any], other: Connection[Any, Any], work: Work) -> None:
    other.close()
    for number in SIGNALS_TO_STOP:  # the process that started this one acts on them
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    workers: dict[str, ForkProcess] = {}
    while True:
        ready = wait([connection, *(process.sentinel for process in workers.values())])
        for key in [key for key, process in workers.items() if process.sentinel in ready]:
            process = workers.pop(key)
            process.join()
            with suppress(OSError):
                connection.send(WorkerEnd(key, process.exitcode or 0))
        if connection in ready:
            try:
                message = connection.recv()
            except (EOFError, OSError):
                break
            if isinstance(message, signal.Signals):
                _signal(workers, message)
            else:
                key, argument = message
                workers[key] = fork_worker(work, argument, connections=[connection])
    _signal(workers, signal.SIGTERM)
    deadline = time.monotonic() + STOP_TIMEOUT
    for process in workers.values():
        process.join(max(0.0, deadline - time.monotonic()))
        process.kill()


def fork_worker(
    work: Work, argument: Any, *, connections: Sequence[Connection[Any, Any]] = ()
) -> ForkProcess:
    """Start a process that ends by SIGTERM, Ctrl-C, and when this process is gone.

    Args:
        work: called in the process.
        argument: of `work`.
        connections: of this process, for the process to close.
    """
    process = multiprocessing.get_context("fork").Process(
        target=_work, args=(connections, os.getpid(), work, argument)
    )
    _start(process)
    return process


def _start(process: ForkProcess) -> None:
    """Start a process, which has to unblock signals when its handlers are set."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)


def _work(
    connections: Sequence[Connection[Any, Any]], parent: int, work: Work, argument: Any
) -> None:
    for connection in connections:
        connection.close()
    end_with_parent(parent, timeout=STOP_TIMEOUT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # Slurm sends the signal of submitit to all processes of a job; the parent acts on it.
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    work(argument)


def _signal(workers: dict[str, ForkProcess], number: signal.Signals) -> None:
    for process in workers.values():
        with suppress(ProcessLookupError):
            os.kill(process.pid or 0, number)
