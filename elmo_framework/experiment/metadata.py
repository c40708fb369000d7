"""Metadata of a run: versions, machine, commit, plugins, digests, word coverage."""

from __future__ import annotations

import json
import logging
import os
import platform
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

import elmo_framework
from elmo_framework.config.plugins import plugin_packages
from elmo_framework.experiment.experiment import Experiment, Split
from elmo_framework.io.files import digest
from elmo_framework.model.model import Model
from elmo_framework.model.part import Part, parts_of
from elmo_framework.version import VERSION

_LIBRARIES = ("torch", "numpy", "h5py", "safetensors", "pydantic", "jsonnet", "spacy")
_PACKAGE = Path(elmo_framework.__file__).parent
_EXTERNAL_VARIABLE = "--ext-var"


def describe_environment(device: torch.device, *, plugins: Iterable[str] = ()) -> dict[str, Any]:
    """Return versions and the machine.

    Args:
        device: that trains.
        plugins: the modules that the configuration names.
    """
    is_gpu = device.type == "cuda"
    return {
        "elmo_framework": VERSION,
        "python": platform.python_version(),
        "libraries": {name: version(name) for name in _LIBRARIES},
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


def without_variables(command: Sequence[str]) -> list[str]:
    """Return a command line with the names of its external variables, without their values."""
    return list(_without_variables(command))


def _without_variables(command: Sequence[str]) -> Iterator[str]:
    is_variable = False
    for word in command:
        prefix = f"{_EXTERNAL_VARIABLE}="
        if is_variable:
            yield _name(word)
        elif word.startswith(prefix):
            yield prefix + _name(word.removeprefix(prefix))
        else:
            yield word
        is_variable = not is_variable and word == _EXTERNAL_VARIABLE


def _name(variable: str) -> str:
    return f"{variable.partition('=')[0]}=..."


def describe_checkout(package: Path) -> dict[str, Any]:
    """Return the Git commit that a package was imported from, and whether it was changed since.

    Args:
        package: its folder.

    Returns:
        `git_commit`, and `git_changed`: whether a file of the package differs from the commit;
        both None for a package that is installed without its repository.
    """
    tracked = _git(package, "ls-files", "--error-unmatch", "__init__.py")
    commit = None if tracked is None else _git(package, "rev-parse", "HEAD")
    changes = None if commit is None else _git(package, "status", "--porcelain", "--", ".")
    return {"git_commit": commit, "git_changed": None if changes is None else bool(changes)}


def _git(folder: Path, *words: str) -> str | None:
    """Return what Git says of a folder; None where it fails or is not there."""
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


def digest_of_config(filled: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a filled configuration."""
    return sha256(json.dumps(filled, sort_keys=True).encode()).hexdigest()


def digests_of_data(files: Mapping[Path, Iterable[Path]]) -> dict[str, str]:
    """Return the SHA-256 of the files of each path, by its absolute form."""
    return {str(path.absolute()): digest(held) for path, held in files.items()}


_log = logging.getLogger(__name__)


def word_coverage(
    experiment: Experiment, model: Model[Any]
) -> dict[str, dict[str, dict[str, float]]]:
    """Measure for each embedder with a file, and each data set, the share of words it knows.

    Returns:
        by the embedder's name and the data set: `running_words`, the share of all words, and
        `distinct_words`. Empty where no embedder reads a file.

    Raises:
        DataError: some of the data cannot be read.
    """
    parts = {name: part for name, part in parts_of(model) if part.has_vector("") is not None}
    if not parts:
        return {}
    counts: dict[str, Counter[str]] = {
        split: _count(experiment, model, split) for split in experiment.used_splits
    }
    shares = {
        name: {split: _shares(part, counted) for split, counted in counts.items()}
        for name, part in parts.items()
    }
    for name, by_split in shares.items():
        _log.info("%s has vectors for %s", name, ", ".join(map(_shown, by_split.items())))
    return shares


def _count(experiment: Experiment, model: Model[Any], split: Split) -> Counter[str]:
    counted: Counter[str] = Counter()
    for example in experiment.examples(split):
        for words in model.task.sentences(example):
            counted.update(words)
    return counted


def _shares(part: Part, counted: Counter[str]) -> dict[str, float]:
    known = Counter({word: count for word, count in counted.items() if part.has_vector(word)})
    return {
        "running_words": known.total() / max(counted.total(), 1),
        "distinct_words": len(known) / max(len(counted), 1),
    }


def _shown(item: tuple[str, Mapping[str, float]]) -> str:
    split, shares = item
    return (
        f"{100 * shares['running_words']:.1f} % of the words of {split} "
        f"({100 * shares['distinct_words']:.1f} % of the distinct ones)"
    )
