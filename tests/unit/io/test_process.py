"""Memory that a process keeps."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from elmo_framework.io import process
from elmo_framework.io.process import end_with_launcher, terminable, terminable_command

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


_CYCLE = """
import sys
from elmo_framework.io.process import skip_last_collection

class Cycle:
    def __init__(self):
        self.itself = self

    def __del__(self):
        print("collected")

if sys.argv[1] != "no":
    skip_last_collection()
if sys.argv[1] == "triton":
    sys.modules["triton"] = sys
Cycle()
"""


_PRODUCTS = """
import os, sys
from elmo_framework.io.process import limit_compiled_products

if sys.argv[1] == "limit":
    limit_compiled_products()

import torch
from elmo_framework.kernels.product import _multiplied

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

weight = torch.rand(64, 64)
for number in range(2, 602):
    if number == 202:
        before = resident()
    _multiplied(torch.rand(number, 64), weight, None)
print(resident() - before > 20 * 2**20)
"""


def keeps(choice: str) -> str:
    command = [sys.executable, "-c", _PROGRAM, choice]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_freed_memory_is_retained_on_request() -> None:
    assert keeps("keep") == "True"
    assert keeps("not") == "False"


@pytest.mark.parametrize(("choice", "grows"), [("limit", "False"), ("not", "True")])
def test_code_of_products_is_bounded_on_request(choice: str, grows: str) -> None:
    """Without the limit it grows, so that the test notices when PyTorch changes the names."""
    # A command that ran in this process may have set the limits.
    environment = {name: os.environ[name] for name in os.environ if "CACHE_CAPACITY" not in name}
    command = [sys.executable, "-c", _PRODUCTS, choice]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.strip() == grows


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


LAUNCHER = """
import os, subprocess, sys
subprocess.Popen([sys.executable, "-c", sys.argv[1]])
sys.stdin.read()
"""
WORKER = """
import signal, sys
from elmo_framework.io import process
process._POLL_INTERVAL = 0.01
process.end_with_launcher()
"""
STOPPING = """
signal.signal(signal.SIGTERM, lambda number, frame: sys.exit("stopped"))
"""
HANGING = """
import os
process.end_with_parent(os.getppid(), timeout=0.01)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
"""
ORPHANED = """
import os, pathlib
process._FIRST_COMMAND = pathlib.Path("a missing file")
os.getppid = lambda: 1
process.end_with_launcher()
"""
WAITING = """
print("ready", flush=True)
while True:
    signal.pause()
"""


def words_of_worker(code: str) -> str:
    """What a worker writes that loses its launcher; returns when the worker has ended."""
    with subprocess.Popen(
        [sys.executable, "-c", LAUNCHER, WORKER + code + WAITING],
        env={**os.environ, "TORCHELASTIC_RUN_ID": "a run"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.kill()
        return process.stdout.read()


def test_a_worker_stops_as_by_sigterm() -> None:
    assert words_of_worker(STOPPING) == "stopped\n"


def test_a_worker_that_cannot_stop_is_killed() -> None:
    assert words_of_worker(HANGING) == ""


def test_worker_of_an_ended_launcher_does_not_start() -> None:
    worker = subprocess.run(
        [sys.executable, "-c", WORKER + ORPHANED + WAITING],
        env={**os.environ, "TORCHELASTIC_RUN_ID": "a run"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    assert (worker.returncode, worker.stdout) == (-signal.SIGTERM, b"")


def test_a_launcher_can_be_the_first_process(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    command = tmp_path / "cmdline"
    command.write_bytes(b"/usr/bin/python3\0/usr/bin/torchrun\0")
    monkeypatch.setattr(process, "_FIRST_COMMAND", command)
    assert not process._is_orphan(1)


def test_other_launchers_are_not_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    num_threads = threading.active_count()
    end_with_launcher()
    assert threading.active_count() == num_threads


@pytest.mark.parametrize(
    ("argument", "output"), [("skip", ""), ("no", "collected\n"), ("triton", "collected\n")]
)
def test_garbage_is_not_searched_at_the_end(argument: str, output: str) -> None:
    command = [sys.executable, "-c", _CYCLE, argument]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == output
