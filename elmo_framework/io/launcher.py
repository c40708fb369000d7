"""End a worker whose launcher was killed: `torchrun` cannot stop it any more."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

_FIRST_COMMAND = Path("/proc/1/cmdline")
"""Where Linux shows the command line of the first process."""

_SECONDS_BETWEEN_LOOKS = 1.0
_SECONDS_TO_STOP = 30.0
"""As long as `torchrun` itself waits for its workers before it kills them."""


def end_with_launcher() -> None:
    """Watch `torchrun`, where it has started this process; without it, stop as by its SIGTERM.

    A worker in training saves a checkpoint. One that cannot stop, since it waits for a process that
    is gone, is killed.
    """
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        return
    launcher = os.getppid()
    if _is_orphan(launcher):
        os.kill(os.getpid(), signal.SIGTERM)
    threading.Thread(target=_watch, args=(launcher,), daemon=True).start()


def _is_orphan(parent: int) -> bool:
    """Tell whether the launcher ended before this process looked for it.

    Orphans are given to the first process. In a container, that can be the launcher itself.
    """
    if parent != 1:
        return False
    command = _FIRST_COMMAND.read_bytes() if _FIRST_COMMAND.is_file() else b""
    return b"python" not in command and b"torch" not in command


def _watch(launcher: int) -> None:
    # A process whose parent has ended is given another one.
    while os.getppid() == launcher:
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_SECONDS_TO_STOP)
    os.kill(os.getpid(), signal.SIGKILL)
