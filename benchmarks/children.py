"""Child processes that end when the script that started them does, however it ends.

On SIGTERM, SIGHUP, Ctrl-C and errors the script itself ends them. On Linux the kernel does so
where the script is killed: a child is started by this file, which asks for that and then becomes
the child's program.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import IO, NoReturn

_PR_SET_PDEATHSIG = 1
"""Of Linux' prctl.h: the signal that a process gets when its parent has died."""


class Children:
    """Starts processes, from several threads too, until it is stopped."""

    def __init__(self) -> None:
        self._lock, self._is_stopped = Lock(), False
        self._running: set[subprocess.Popen[bytes]] = set()

    def run(self, command: Sequence[str], *, output: IO[str]) -> int:
        """Run a command and return its exit code; minus SIGTERM where nothing is started any more.

        Args:
            command: the program and its arguments.
            output: what its standard output and standard error go to.
        """
        with self._lock:
            if self._is_stopped:
                return -signal.SIGTERM
            process = subprocess.Popen(tied(command), stdout=output, stderr=output)
            self._running.add(process)
        code = process.wait()
        with self._lock:
            self._running.remove(process)
        return code

    def stop(self) -> None:
        """Send SIGTERM to all that run, and start no more."""
        with self._lock:
            self._is_stopped = True
            for process in self._running:
                process.terminate()


@contextmanager
def ending_children() -> Iterator[Children]:
    """Give what starts children; they are ended when the block fails or is interrupted.

    SIGTERM and SIGHUP end the block by SystemExit. Threads that wait for a child are to be joined
    outside of the block.
    """
    children = Children()
    signals = (signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, _end) for number in signals}
    try:
        yield children
    finally:
        children.stop()
        for number, handler in before.items():
            signal.signal(number, handler)


def tied(command: Sequence[str]) -> list[str]:
    """Return what runs a command that ends with this process, on Linux even if it is killed."""
    return [sys.executable, __file__, str(os.getpid()), *command]


def _end(number: int, _: object) -> NoReturn:
    raise SystemExit(128 + number)


def _become(parent: int, command: Sequence[str]) -> NoReturn:
    """Take another program's place in this process, which ends with its parent."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:  # it died before the kernel knew
        raise SystemExit(128 + signal.SIGTERM)
    os.execvp(command[0], command)


if __name__ == "__main__":
    _become(int(sys.argv[1]), sys.argv[2:])
