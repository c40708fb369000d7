"""A clean stop: Ctrl-C and SIGTERM are noted, and obeyed between two batches."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SAME_REQUEST = 1.0
"""Seconds in which a second SIGINT is the first one again: `torchrun` sends it on to its workers.
"""


class StopRequestedError(Exception):
    """Work was abandoned, since one of the processes was asked to stop.

    Attributes:
        signal_name: of the signal that asked.
    """

    def __init__(self, signal_name: str) -> None:
        self.signal_name = signal_name
        super().__init__(signal_name)


class Interrupt:
    """Remembers that a stop was asked for.

    Attributes:
        signal_name: of the first signal; None before it.
    """

    def __init__(self) -> None:
        self.signal_name: str | None = None
        self._interrupted_at: float | None = None

    def request(self, number: int, frame: FrameType | None = None) -> None:
        """Note a signal; a second Ctrl-C ends the process at once.

        A second SIGTERM changes nothing. Schedulers send it to every process of a job, also to
        `torchrun`, which sends it to its workers again.

        Raises:
            KeyboardInterrupt: it is a second Ctrl-C.
        """
        self.signal_name = self.signal_name or signal.Signals(number).name
        if number != signal.SIGINT:
            return
        now = time.monotonic()
        if self._interrupted_at is None:
            self._interrupted_at = now
        elif now - self._interrupted_at > _SAME_REQUEST:
            raise KeyboardInterrupt


@contextmanager
def interrupts() -> Iterator[Interrupt]:
    """Note Ctrl-C and SIGTERM for a while, in the main thread."""
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, interrupt.request) for number in numbers}
    try:
        yield interrupt
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def ignore_termination() -> None:
    """Ignore SIGTERM from here on: the process is ending by itself, and says why.

    `torchrun` sends one to all others as soon as a process has died, and a scheduler's reaches
    each worker a second time through it.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
