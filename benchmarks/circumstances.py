"""What decides in which order a machine adds up, and so the last bits of a loss."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path
from shutil import which
from typing import Any

import torch


def circumstances() -> dict[str, Any]:
    """Return the CPU, the C compiler, the PyTorch and the number of threads of this process."""
    return {
        "processor": processor(Path("/proc/cpuinfo")),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "compiler": compiler(),
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
    }


def processor(described: Path) -> str:
    """Return the type of the CPU: its maker, family and model, as Linux describes them.

    Virtual machines often hide the name that it is sold under, but not these numbers.
    """
    lines = described.read_text().splitlines() if described.exists() else []
    fields = {
        key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)
    }
    if "vendor_id" not in fields:
        return platform.processor() or platform.machine()
    return (
        f"{fields['vendor_id']} family {fields.get('cpu family')} model {fields.get('model')} "
        f"({fields.get('model name')})"
    )


def compiler() -> str | None:
    """Return the version of the C compiler that the fast paths are compiled with."""
    path = which(os.environ.get("CC", "cc"))
    if path is None:
        return None
    version = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    return version.stdout.partition("\n")[0]
