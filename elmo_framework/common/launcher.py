"""End a worker whose launcher was killed: `torchrun` cannot stop it any more."""

from __future__ import annotations

import os
import signal
import threading
import time

_SECONDS_BETWEEN_LOOKS = 1.0
_SECONDS_TO_STOP = 30.0
"""As long as `torchrun` itself waits for its workers before it kills them."""


def end_with_launcher() -> None:
    """Watch `torchrun`, where it has started this process; without it, stop as by its SIGTERM.

    A worker in training saves a checkpoint. One that cannot stop, since it waits for a process that
    is gone, is killed. Call this first: a launcher that dies before is not noticed here.
    """
    if "TORCHELASTIC_RUN_ID" in os.environ:
        threading.Thread(target=_watch, args=(os.getppid(),), daemon=True).start()


def _watch(launcher: int) -> None:
    # A process whose parent has ended is given another one.
    while os.getppid() == launcher:
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_SECONDS_TO_STOP)
    os.kill(os.getpid(), signal.SIGKILL)
