"""A clean stop: Ctrl-C and SIGTERM are taken note of, and obeyed after the update under way."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupt:
    """Remembers that a stop was asked for."""

    def __init__(self) -> None:
        self.signal_name: str | None = None

    def request(self, number: int, frame: FrameType | None = None) -> None:
        """Take note of a signal; a second one ends the process at once."""
        if self.signal_name is not None:
            raise KeyboardInterrupt
        self.signal_name = signal.Signals(number).name


@contextmanager
def interrupts() -> Iterator[Interrupt]:
    """Take note of Ctrl-C and SIGTERM for a while, in the main thread."""
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
    """Take no SIGTERM from here on: the process ends by itself, and says why.

    `torchrun` sends one to all others as soon as a process has died.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
