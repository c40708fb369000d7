"""A worker whose launcher is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from elmo_framework.io import launcher
from elmo_framework.io.launcher import end_with_launcher

LAUNCHER = """
import os, subprocess, sys
subprocess.Popen([sys.executable, "-c", sys.argv[1]])
sys.stdin.read()
"""
WORKER = """
import signal, sys
from elmo_framework.io import launcher
launcher._POLL_INTERVAL = 0.01
launcher.end_with_launcher()
"""
STOPPING = """
signal.signal(signal.SIGTERM, lambda number, frame: sys.exit("stopped"))
"""
HANGING = """
launcher._STOP_TIMEOUT = 0.01
signal.signal(signal.SIGTERM, signal.SIG_IGN)
"""
ORPHANED = """
import os, pathlib
launcher._FIRST_COMMAND = pathlib.Path("a missing file")
os.getppid = lambda: 1
launcher.end_with_launcher()
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
    monkeypatch.setattr(launcher, "_FIRST_COMMAND", command)
    assert not launcher._is_orphan(1)


def test_other_launchers_are_not_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    num_threads = threading.active_count()
    end_with_launcher()
    assert threading.active_count() == num_threads
