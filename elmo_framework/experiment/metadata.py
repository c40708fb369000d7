"""What one needs to know to repeat a run: versions, machine, commit, digests."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from elmo_framework.common.files import digest
from elmo_framework.version import VERSION

_LIBRARIES = ("torch", "numpy", "h5py", "safetensors", "pydantic", "jsonnet", "spacy")


def describe_environment(device: torch.device) -> dict[str, Any]:
    """Return versions and the machine."""
    is_gpu = device.type == "cuda"
    return {
        "elmo_framework": VERSION,
        "python": platform.python_version(),
        "libraries": {name: version(name) for name in _LIBRARIES},
        "platform": platform.platform(),
        "num_cpus": os.cpu_count(),
        "num_threads": torch.get_num_threads(),
        "device": torch.cuda.get_device_name(device) if is_gpu else "cpu",
        "command": sys.argv,
        "working_directory": str(Path.cwd()),
        "git_commit": _git_commit(),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def digest_of_config(filled: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a filled configuration."""
    return sha256(json.dumps(filled, sort_keys=True).encode()).hexdigest()


def digests_of_data(files: Mapping[Path, Iterable[Path]]) -> dict[str, str]:
    """Return the SHA-256 of the files of each path, by its absolute form."""
    return {str(path.absolute()): digest(held) for path, held in files.items()}


def _git_commit() -> str | None:
    """Return the commit of the working directory, if it is in a repository."""
    try:
        found = subprocess.run(
            ["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.strip()
