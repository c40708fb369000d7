"""Memory that a process keeps."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest

from elmo_framework.io.process import terminable, terminable_command

_PROGRAM = """
import ctypes, sys
from elmo_framework.io.process import keep_freed_memory

def held():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

if sys.argv[1] == "keep":
    keep_freed_memory()
size = 200 * 1024 * 1024
library = ctypes.CDLL(None)
library.malloc.restype = ctypes.c_void_p
library.malloc.argtypes = [ctypes.c_size_t]
library.free.argtypes = [ctypes.c_void_p]
block = library.malloc(size)
ctypes.memset(block, 1, size)
library.free(block)
print(held() > size)
"""


def keeps(choice: str) -> str:
    command = [sys.executable, "-c", _PROGRAM, choice]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_what_is_freed_stays_with_the_process_when_asked_for() -> None:
    assert keeps("keep") == "True"
    assert keeps("not") == "False"


def handler() -> object:
    return signal.getsignal(signal.SIGTERM)


def terminate(done: list[str], num_signals: int = 1) -> None:
    """Send this process SIGTERM while it works, and again while it ends."""
    try:
        os.kill(os.getpid(), signal.SIGTERM)
        done.append("work")
    finally:
        for _ in range(num_signals - 1):
            os.kill(os.getpid(), signal.SIGTERM)
        done.append("end")


def test_only_the_first_sigterm_interrupts() -> None:
    before, done = handler(), list[str]()
    with pytest.raises(KeyboardInterrupt), terminable():
        terminate(done, 3)
    assert done == ["end"]
    assert handler() == before


def test_a_second_sigterm_does_not_disturb_an_outer_block() -> None:
    before, done = handler(), list[str]()
    with terminable():
        with pytest.raises(KeyboardInterrupt), terminable():
            terminate(done)
        os.kill(os.getpid(), signal.SIGTERM)
    assert handler() == before


def test_an_inner_block_leaves_the_handler_of_the_outer_one() -> None:
    with terminable():
        outer = handler()
        with terminable():
            pass
        assert handler() == outer


def test_other_threads_change_nothing() -> None:
    before, handlers = handler(), list[object]()

    def work() -> None:
        with terminable():
            handlers.append(handler())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert handlers == [before]


@pytest.mark.parametrize(("num_processes", "is_changed"), [(None, True), ("1", True), ("2", False)])
def test_a_command_in_several_processes_ends_at_once(
    monkeypatch: pytest.MonkeyPatch, num_processes: str | None, is_changed: bool
) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    if num_processes is not None:
        monkeypatch.setenv("WORLD_SIZE", num_processes)
    before = handler()
    with terminable_command():
        assert (handler() != before) == is_changed
