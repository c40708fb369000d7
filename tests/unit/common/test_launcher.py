"""A worker whose launcher is killed."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from elmo_framework.common.launcher import end_with_launcher

LAUNCHER = """
import os, subprocess, sys
subprocess.Popen([sys.executable, "-c", sys.argv[1]])
sys.stdin.read()
"""
WORKER = """
import signal, sys
from elmo_framework.common import launcher
launcher._SECONDS_BETWEEN_LOOKS = 0.01
launcher.end_with_launcher()
"""
STOPPING = """
signal.signal(signal.SIGTERM, lambda number, frame: sys.exit("stopped"))
"""
HANGING = """
launcher._SECONDS_TO_STOP = 0.01
signal.signal(signal.SIGTERM, signal.SIG_IGN)
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
    ) as launcher:
        assert launcher.stdout is not None
        assert launcher.stdout.readline() == "ready\n"
        launcher.kill()
        return launcher.stdout.read()


def test_a_worker_stops_as_by_sigterm() -> None:
    assert words_of_worker(STOPPING) == "stopped\n"


def test_a_worker_that_cannot_stop_is_killed() -> None:
    assert words_of_worker(HANGING) == ""


def test_other_launchers_are_not_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    num_threads = threading.active_count()
    end_with_launcher()
    assert threading.active_count() == num_threads
