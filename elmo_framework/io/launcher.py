"""Stop a worker whose launcher was killed, since `torchrun` can no longer do it."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

_FIRST_COMMAND = Path("/proc/1/cmdline")
"""On Linux, the command line of the first process."""

_POLL_INTERVAL = 1.0
_STOP_TIMEOUT = 30.0
"""Seconds, as long as `torchrun` itself waits for its workers before it kills them."""


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
    threading.Thread(target=_watch, args=(launcher,), daemon=True).start()


def _is_orphan(parent: int) -> bool:
    """Return whether the launcher ended before this process asked for its parent.

    Orphans are adopted by the first process. In a container, that can be the launcher itself.
    """
    if parent != 1:
        return False
    command = _FIRST_COMMAND.read_bytes() if _FIRST_COMMAND.is_file() else b""
    return b"python" not in command and b"torch" not in command


def _watch(launcher: int) -> None:
    # A process whose parent has ended is adopted by another one.
    while os.getppid() == launcher:
        time.sleep(_POLL_INTERVAL)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_STOP_TIMEOUT)
    os.kill(os.getpid(), signal.SIGKILL)
