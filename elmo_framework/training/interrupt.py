"""Graceful stop: Ctrl-C and SIGTERM are recorded and acted upon between two batches."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SAME_REQUEST = 1.0
"""A second SIGINT within so many seconds is the first one again, forwarded by `torchrun`."""


class StopRequestedError(Exception):
    """Raised when work is abandoned because one of the processes received a signal to stop."""

    def __init__(self, signal_name: str) -> None:
        self.signal_name = signal_name
        super().__init__(signal_name)


class Interrupt:
    """Records requests to stop.

    Attributes:
        signal_name: the first signal received; None before it.
    """

    def __init__(self) -> None:
        self.signal_name: str | None = None
        self._interrupted_at: float | None = None

    def request(self, number: int, frame: FrameType | None = None) -> None:
        """Handle a signal; a second Ctrl-C ends the process at once.

        A second SIGTERM has no effect: schedulers send it to every process of a job, `torchrun`
        among them, which forwards it to its workers.

        Raises:
            KeyboardInterrupt: on the second Ctrl-C.
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
    """Record Ctrl-C and SIGTERM inside the block; in other threads, do nothing."""
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    handlers = {number: signal.signal(number, interrupt.request) for number in numbers}
    try:
        yield interrupt
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def ignore_termination() -> None:
    """Ignore SIGTERM from now on, so that the process can still report why it ends.

    `torchrun` sends SIGTERM to all workers as soon as one has died, and forwards the scheduler's,
    which the workers have received already.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
