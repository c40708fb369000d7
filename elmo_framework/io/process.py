"""Standard streams, environment variables, memory, signals and launcher of this process."""

from __future__ import annotations

import atexit
import ctypes
import errno
import gc
import io
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import BinaryIO, NoReturn, TextIO, cast

SIGNALS_TO_STOP = (signal.SIGINT, signal.SIGTERM)

_STANDARD_FILES = (0, 1, 2)

_FIRST_COMMAND = Path("/proc/1/cmdline")
"""On Linux, the command line of the first process."""

_SPIN_COUNT = "3000"
"""Tens of microseconds: a longer wait costs more than to wake a thread."""

_NUM_COMPILED_PRODUCTS = {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "128", "LRU_CACHE_CAPACITY": "64"}
"""More than a batch needs; of 70,000 words with `mini`, compiling takes 0.3 seconds, not 0.2."""

_POLL_INTERVAL = 1.0
_LAUNCHER_STOP_TIMEOUT = 30.0
"""Seconds, as long as `torchrun` itself waits for its workers before it kills them."""


def num_usable_cpus() -> int:
    """Return the number of CPUs that this process may use, which may be fewer than there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def prepare_command() -> None:
    """Configure the process of a command, before PyTorch is imported."""
    end_with_launcher()
    skip_last_collection()
    limit_spinning()
    open_streams()


def open_streams() -> None:
    """Replace standard streams that are closed, as by `<&-` in a shell.

    Reading a closed standard input raises an OSError; text for a closed standard error is dropped.
    Bytes of a file name that are not valid text are written to standard output unchanged.
    """
    for number in _STANDARD_FILES:
        _occupy(number)
    sys.stdin = sys.stdin or cast(TextIO, _ClosedInput())
    sys.stderr = sys.stderr or os.fdopen(2, "w", errors="backslashreplace", closefd=False)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="surrogateescape")


def limit_spinning() -> None:
    """Let threads of PyTorch that wait for each other yield the CPU soon.

    By default they spin for milliseconds. If another process has the core of the thread that they
    wait for, a computation with two threads is up to a hundred times slower. Your own settings of
    OpenMP stay. It has an effect before PyTorch is imported.
    """
    if not {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"} & os.environ.keys():
        os.environ["GOMP_SPINCOUNT"] = _SPIN_COUNT


def skip_last_collection() -> None:
    """Let the process end without a last search for garbage.

    The system frees its memory in any case. With PyTorch imported, the search takes 0.2 seconds.
    Where Triton is imported it is done, as Triton prints a warning for what it does not find.
    """
    atexit.unregister(_freeze)
    atexit.register(_freeze)


def _freeze() -> None:
    if "triton" not in sys.modules:
        gc.freeze()


def limit_compiled_products() -> None:
    """Let oneDNN keep the code of few products, for a job that reads millions of sentences.

    It compiles code for each shape, which takes 0.1 ms, half a megabyte is kept for it, and new
    shapes occur for a long time. oneDNN and PyTorch have a cache each, of 1,024 shapes by default.
    Your own settings stay. It has an effect before PyTorch is imported.
    """
    for name, capacity in _NUM_COMPILED_PRODUCTS.items():
        os.environ.setdefault(name, capacity)


def unwritable(error: UnicodeEncodeError) -> str:
    """Return the message for a character that standard output cannot encode."""
    character = error.object[error.start]
    return (
        f"cannot write {character!a} to standard output in its encoding {error.encoding!r}; set "
        "PYTHONIOENCODING=utf-8"
    )


def _occupy(number: int) -> None:
    """Prevent a file that is opened later from getting the number of a closed stream."""
    try:
        os.fstat(number)
    except OSError:
        os.open(os.devnull, os.O_RDWR)  # the lowest free number


class _ClosedInput(io.TextIOBase):
    """A closed standard input; every read raises an OSError."""

    @property
    def buffer(self) -> BinaryIO:
        self._refuse()

    def read(self, size: int | None = -1) -> str:
        self._refuse()

    def readline(self, size: int = -1) -> str:  # type: ignore[override]
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise OSError(
            errno.EBADF, "it is closed; redirect it from a file or a pipe", "standard input"
        )


@contextmanager
def variable(name: str, value: str) -> Iterator[None]:
    """Set an environment variable temporarily."""
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
    """Configure glibc not to return freed memory to the system; other C libraries are unaffected.

    A training step frees hundreds of megabytes and allocates them again. By default glibc returns
    blocks of that size at once, and the system fills new ones with zeros, page by page: up to a
    quarter of the time of a step. For commands only, since it affects the whole process.
    """
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    set_option(_MMAP_THRESHOLD, _ONE_GIBIBYTE)
    set_option(_TRIM_THRESHOLD, _NEVER)


@contextmanager
def terminable() -> Iterator[None]:
    """Raise KeyboardInterrupt at the first SIGTERM and ignore others, in the main thread.

    Schedulers send one to every process of a job, and `torchrun` sends it to its workers again.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        if before is not _interrupt:  # an outer block restores the handler otherwise
            signal.signal(signal.SIGTERM, before or signal.SIG_DFL)


@contextmanager
def terminable_command() -> Iterator[None]:
    """Apply `terminable` to a whole command, but not in one of several processes.

    These wait for each other in libraries, where Python runs no handler. Until they enter
    `terminable` themselves, a SIGTERM ends them at once.
    """
    if os.environ.get("WORLD_SIZE", "1") != "1":
        yield
        return
    with terminable():
        yield


def _interrupt(number: int, frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def end_with_launcher() -> None:
    """If `torchrun` started this process, send it SIGTERM when `torchrun` is gone.

    A worker in training saves a checkpoint. One that cannot stop, since it waits for a process
    that has ended, is killed.
    """
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        return
    launcher = os.getppid()
    if _is_orphan(launcher):
        os.kill(os.getpid(), signal.SIGTERM)
    end_with_parent(launcher, timeout=_LAUNCHER_STOP_TIMEOUT)


def end_with_parent(parent: int, *, timeout: float) -> None:
    """Send this process SIGTERM when its parent is gone, and kill it if it does not end.

    Args:
        parent: the process that started this one; it may have ended already.
        timeout: seconds between SIGTERM and SIGKILL.
    """
    threading.Thread(target=_watch, args=(parent, timeout), daemon=True).start()


def _is_orphan(parent: int) -> bool:
    """Return whether the launcher ended before this process asked for its parent.

    Orphans are adopted by the first process. In a container, that can be the launcher itself.
    """
    if parent != 1:
        return False
    command = _FIRST_COMMAND.read_bytes() if _FIRST_COMMAND.is_file() else b""
    return b"python" not in command and b"torch" not in command


def _watch(parent: int, timeout: float) -> None:
    # A process whose parent has ended is adopted by another one.
    while os.getppid() == parent:
        time.sleep(_POLL_INTERVAL)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(timeout)
    os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))  # Windows has no SIGKILL
