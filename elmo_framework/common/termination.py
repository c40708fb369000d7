"""SIGTERM that ends work as Ctrl-C does."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


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
