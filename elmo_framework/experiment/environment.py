"""The environment of a run: versions, machine, command and commit."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

import elmo_framework
from elmo_framework.config.plugins import plugin_packages
from elmo_framework.version import VERSION

_LIBRARIES = ("torch", "numpy", "h5py", "safetensors", "pydantic", "jsonnet", "spacy")
_PACKAGE = Path(elmo_framework.__file__).parent
_EXTERNAL_VARIABLE = "--ext-var"


def describe_environment(device: torch.device, *, plugins: Iterable[str] = ()) -> dict[str, Any]:
    """Return versions, also of the packages of plugins, the machine, the command and the commit."""
    is_gpu = device.type == "cuda"
    return {
        "elmo_framework": VERSION,
        "python": platform.python_version(),
        "libraries": {name: _version(name) for name in _LIBRARIES},
        "plugins": plugin_packages(plugins),
        "platform": platform.platform(),
        "num_cpus": os.cpu_count(),
        "num_threads": torch.get_num_threads(),
        "device": torch.cuda.get_device_name(device) if is_gpu else "cpu",
        "command": without_variables(sys.argv),
        "working_directory": str(Path.cwd()),
        **describe_checkout(_PACKAGE),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _version(library: str) -> str | None:
    """Return the version of a library; None where it is missing, since not all runs need all."""
    try:
        return version(library)
    except PackageNotFoundError:
        return None


def without_variables(command: Sequence[str]) -> list[str]:
    """Return a command line with the names of its external variables, without their values."""
    words = []
    is_variable = False
    for word in command:
        prefix = f"{_EXTERNAL_VARIABLE}="
        if is_variable:
            words.append(_name(word))
        elif word.startswith(prefix):
            words.append(prefix + _name(word.removeprefix(prefix)))
        else:
            words.append(word)
        is_variable = not is_variable and word == _EXTERNAL_VARIABLE
    return words


def _name(variable: str) -> str:
    return f"{variable.partition('=')[0]}=..."


def describe_checkout(package: Path) -> dict[str, Any]:
    """Return the Git commit that a package was imported from, and whether it was changed since.

    Returns:
        `git_commit`, and `git_changed`: whether a file of the package differs from the commit;
        both None for a package that is installed without its repository.
    """
    tracked = _git(package, "ls-files", "--error-unmatch", "__init__.py")
    commit = None if tracked is None else _git(package, "rev-parse", "HEAD")
    changes = None if commit is None else _git(package, "status", "--porcelain", "--", ".")
    return {"git_commit": commit, "git_changed": None if changes is None else bool(changes)}


def _git(folder: Path, *words: str) -> str | None:
    """Return the output of a Git command in a folder; None if Git fails or is missing."""
    # Variables such as GIT_DIR, which a hook sets, would name another repository.
    environment = {name: os.environ[name] for name in os.environ if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words],
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
            env=environment,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
