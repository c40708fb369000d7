"""The metrics of several runs as a table."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, final

from elmo_framework.errors import RunError, allowed, with_hint
from elmo_framework.experiment.run_directory import RunDirectory
from elmo_framework.io.files import path_hint

_RUN = "run"


@final
@dataclass(frozen=True)
class RunTable:
    """The metrics of runs.

    Attributes:
        columns: `run`, then the names of metrics.
        rows: of the finished runs; a run may lack a metric.
        imported: the paths of runs with weights and without metrics, such as imported ones.
        unfinished: the paths of the other runs.
    """

    columns: Sequence[str]
    rows: Sequence[Mapping[str, Any]]
    imported: Sequence[str]
    unfinished: Sequence[str]


def find_runs(folder: Path) -> list[RunDirectory]:
    """Return the runs in a folder and below it, by their paths.

    Raises:
        RunError: there is none.
    """
    runs = []
    for path, folders, files in os.walk(folder):
        folders.sort()
        run = RunDirectory(Path(path))
        if run.config.name in files:
            runs.append(run)
            folders.clear()  # a run has no runs
    if not runs and not folder.exists():
        raise RunError(with_hint(f"{folder}: does not exist", path_hint(folder)))
    if not runs:
        raise RunError(f"{folder}: no run here or below; runs are what `elmo train` writes")
    return runs


def run_table(runs: Sequence[RunDirectory], keys: Sequence[str], *, folder: Path) -> RunTable:
    """Make a table of the metrics of runs.

    Args:
        runs: the runs.
        keys: names or patterns of metrics, in the order of the columns; if there are none, those
            that most readers look for.
        folder: to which the names of the runs are relative.

    Raises:
        RunError: no run has a metric of this name, or a file is damaged.
    """
    rows, imported, unfinished = list[dict[str, Any]](), list[str](), list[str]()
    selected: dict[str, None] = {}
    for run in runs:
        name, metrics = str(run.path.relative_to(folder)), run.read(run.metrics)
        if not metrics:
            (imported if run.weights.is_file() else unfinished).append(name)
            continue
        numbers = {
            key: value for key, value in metrics.items() if isinstance(value, int | float | str)
        }
        minutes = {"minutes": round(metrics.get("training_duration", 0.0) / 60, 2)}
        rows.append({_RUN: name, **numbers, **minutes})
        if not keys:
            selected |= dict.fromkeys(_default_keys(run, rows[-1]))
    names = {key: None for row in rows for key in row if key != _RUN}
    for key in keys:
        matching = [name for name in names if fnmatchcase(name, key)]
        if not matching and rows:
            of_validation = f"best_validation_{key}"
            similar = of_validation if of_validation in names else key
            raise RunError(f"unknown metric {key!r}; {allowed(similar, names)}")
        selected |= dict.fromkeys(matching)
    columns = [_RUN, *selected]
    return RunTable(
        columns,
        [{name: row[name] for name in columns if name in row} for row in rows],
        imported,
        unfinished,
    )


def _default_keys(run: RunDirectory, row: Mapping[str, Any]) -> list[str]:
    """Return the names of the score that chose the best weights, of the updates and the minutes."""
    trainer = run.read(run.config).get("trainer", {})
    metric = str(trainer.get("validation_metric") or "-loss").lstrip("+-")
    names = (f"best_validation_{metric}", f"test_{metric}", "training_steps", "minutes")
    return [name for name in names if name in row]
