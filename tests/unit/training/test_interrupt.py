from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable

import pytest

from elmo_framework.training import interrupt as interrupt_module
from elmo_framework.training.interrupt import Interrupt, interrupts


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Sets the clock."""

    def at(seconds: float) -> None:
        monkeypatch.setattr(interrupt_module.time, "monotonic", lambda: seconds)

    return at


def test_further_sigterms_have_no_effect() -> None:
    with interrupts() as interrupt:
        for _ in range(3):
            os.kill(os.getpid(), signal.SIGTERM)
    assert interrupt.signal_name == "SIGTERM"


def test_a_second_ctrl_c_ends_the_process_at_once(at: Callable[[float], None]) -> None:
    interrupt = Interrupt()
    at(100.0)
    interrupt.request(signal.SIGINT)
    at(101.5)
    with pytest.raises(KeyboardInterrupt):
        interrupt.request(signal.SIGINT)


def test_ctrl_c_forwarded_by_torchrun_is_not_a_second_one(at: Callable[[float], None]) -> None:
    interrupt = Interrupt()
    at(100.0)
    interrupt.request(signal.SIGINT)
    at(100.3)
    interrupt.request(signal.SIGINT)
    assert interrupt.signal_name == "SIGINT"


def test_ctrl_c_after_sigterm_counts_as_the_first() -> None:
    interrupt = Interrupt()
    interrupt.request(signal.SIGTERM)
    interrupt.request(signal.SIGINT)
    assert interrupt.signal_name == "SIGTERM"


def test_handlers_are_restored() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with interrupts():
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before


def test_other_threads_record_no_signals() -> None:
    names: list[str | None] = []

    def train() -> None:
        with interrupts() as interrupt:
            names.append(interrupt.signal_name)

    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
    assert names == [None]
