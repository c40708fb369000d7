"""Standard input, output and error where a shell has closed one, or another encoding is set."""

from __future__ import annotations

import ctypes
import errno
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import BinaryIO, NoReturn, TextIO, cast

_STANDARD_FILES = (0, 1, 2)


def open_streams() -> None:
    """Let something stand in for standard streams that are closed, as by `<&-` in a shell.

    Reading standard input raises an OSError then, and what goes to standard error is dropped. The
    bytes of a file's name that are no text are written to standard output as they are.
    """
    for number in _STANDARD_FILES:
        _occupy(number)
    sys.stdin = sys.stdin or cast(TextIO, _ClosedInput())
    sys.stderr = sys.stderr or cast(TextIO, _ClosedError())
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="surrogateescape")


def unwritable(error: UnicodeEncodeError) -> str:
    """Say what standard output cannot hold, in its encoding."""
    character = error.object[error.start]
    return (
        f"standard output has the encoding {error.encoding!r}, which has no {character!a}; set "
        "PYTHONIOENCODING=utf-8"
    )


def _occupy(number: int) -> None:
    """Keep a file that is opened later from getting the number of a closed stream."""
    try:
        os.fstat(number)
    except OSError:
        os.open(os.devnull, os.O_RDWR)  # the lowest free number


class _ClosedInput(io.TextIOBase):
    """Standard input that is closed."""

    @property
    def buffer(self) -> BinaryIO:
        """Raise an OSError."""
        self._refuse()

    def read(self, size: int | None = -1) -> str:
        """Raise an OSError."""
        self._refuse()

    def readline(self, size: int = -1) -> str:  # type: ignore[override]
        """Raise an OSError."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise OSError(errno.EBADF, "it is closed; give a file, or a pipe", "standard input")


class _ClosedError(io.TextIOBase):
    """Standard error that is closed."""

    def write(self, text: str, /) -> int:
        """Drop a text."""
        return len(text)


@contextmanager
def variable(name: str, value: str) -> Iterator[None]:
    """Set an environment variable, and give it the value back that it had."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        del os.environ[name]
        if before is not None:
            os.environ[name] = before


# Parameters of glibc's `mallopt`.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_NEVER, _ONE_GIBIBYTE = -1, 1 << 30


def keep_freed_memory() -> None:
    """Let the process keep what it frees, for it will want as much again in a moment.

    A step of training frees hundreds of megabytes and takes them again. By default the C library
    gives blocks of that size back to the system at once, which then fills new ones with zeros,
    page by page: up to a quarter of the time of a step. For commands only, whose process is
    theirs. Other C libraries than glibc do as they always do.
    """
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    set_option(_MMAP_THRESHOLD, _ONE_GIBIBYTE)
    set_option(_TRIM_THRESHOLD, _NEVER)


@contextmanager
def terminable() -> Iterator[None]:
    """Let the first SIGTERM raise KeyboardInterrupt, and ignore others, in the main thread.

    Schedulers send one to every process of a job, and `torchrun` sends it to its workers again.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        if before is not _interrupt:  # otherwise this block is in another one, which restores it
            signal.signal(signal.SIGTERM, before or signal.SIG_DFL)


@contextmanager
def terminable_command() -> Iterator[None]:
    """Do the same for a whole command, but not for one of several processes.

    These wait for each other in libraries, where Python runs no handler. Until they start the work
    that `terminable` is around, a SIGTERM ends them at once.
    """
    if os.environ.get("WORLD_SIZE", "1") != "1":
        yield
        return
    with terminable():
        yield


def _interrupt(number: int, frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt
