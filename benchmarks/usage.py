"""Time and memory of a command, measured by the system."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

ROOT = Path(__file__).parents[1]
ELMO = (sys.executable, "-m", "elmo_framework")


# The memory of a process is at least that of the one that started it, before its program was
# replaced. So a small process starts the command.
_MEASURED = """
import json, resource, subprocess, sys, time
start = time.perf_counter()
code = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
seconds = time.perf_counter() - start
print(json.dumps([seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]))
sys.exit(code)
"""


@final
@dataclass(frozen=True)
class Usage:
    """Resources of a process and of the processes that it started.

    Attributes:
        seconds: by the clock.
        cpu_seconds: of all its processes together.
        mib: the largest memory of one of them.
    """

    seconds: float
    cpu_seconds: float
    mib: float


def run(command: Sequence[str], *, threads: int = 1, variables: Mapping[str, str] = {}) -> Usage:
    """Run a command of this checkout on the CPU; its output is shown only if it fails.

    Args:
        command: the program and its arguments.
        threads: of each of its processes.
        variables: further environment variables.

    Raises:
        SystemExit: the command failed.
    """
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": str(threads),
        "CUDA_VISIBLE_DEVICES": "",
        "PYTHONPATH": str(ROOT),
        **variables,
    }
    program = [sys.executable, "-c", _MEASURED, *command]
    done = subprocess.run(program, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    return Usage(*json.loads(done.stdout))


def size_mib(folder: Path) -> float:
    """Return the size of all files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / (1 << 20)
