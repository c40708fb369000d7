"""The job behind `elmo report`: a page about runs, their scores, mistakes and origin."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from elmo_framework.analysis.chart import line_chart, reliability_diagram
from elmo_framework.analysis.curves import common_panels, read_panels
from elmo_framework.analysis.neighbors import Neighbors, NeighborSearch, find_neighbors
from elmo_framework.analysis.page import render, show_number
from elmo_framework.analysis.reported_run import (
    ErrorSearch,
    ReportedRun,
    differing_settings,
    read_reported_runs,
    shortened,
)
from elmo_framework.analysis.shading import COLORS, shaded_words, strongest
from elmo_framework.experiment.load_run import bilm_of
from elmo_framework.experiment.run_directory import RunDirectory, require_distinct
from elmo_framework.io.files import writing

_FROM_CONFIG = ("train_data_path", "validation_data_path", "random_seed")
_FROM_METADATA = (
    "started",
    "device",
    "num_cpus",
    "num_threads",
    "git_commit",
    "git_changed",
    "elmo_framework",
)
_VALIDATION = "best_validation_"


def write_report(
    runs: Path | Sequence[Path],
    output: Path,
    *,
    errors: ErrorSearch | None = None,
    search: NeighborSearch | None = None,
    before: str | None = None,
    bilms: Sequence[Path | str] = (),
    packages: Sequence[str] = (),
) -> None:
    """Write a page about a run, or about several next to each other; they need not be finished.

    Args:
        runs: their folders.
        output: the path of the page.
        errors: for the worst predictions of each run; by default none.
        search: for neighbors to show next to the curves, by the biLM that each run trained or
            reads; by default none.
        before: another biLM that is searched with too: its folder, or its name.
        bilms: where the biLMs are that the runs read, if they were moved.
        packages: plugins that the runs need besides their own.

    Raises:
        RunError: a run does not exist or is listed twice; with `errors`: it cannot be loaded or
            has no validation data; with `search`: its biLM cannot be located.
        DataError: with `errors`: the data cannot be read; with `search`: a biLM does not exist, or
            the search has no result.
        OSError: the page cannot be written.
    """
    directories = [RunDirectory.begun(run) for run in ([runs] if isinstance(runs, Path) else runs)]
    require_distinct([run.path for run in directories])
    # Where it goes is checked first, as the rest takes long.
    with writing(output) as file:
        reported = read_reported_runs(directories, errors=errors, packages=packages, bilms=bilms)
        neighbors = {}
        if search is not None:
            places: dict[str, Path | str] = {} if before is None else {f"before: {before}": before}
            for directory in directories:
                places |= _bilm_of_run(directory, bilms, packages)
            neighbors = {name: find_neighbors(bilm, search) for name, bilm in places.items()}
        file.write(_page(reported, neighbors))


def _bilm_of_run(
    run: RunDirectory, bilms: Sequence[Path | str], packages: Sequence[str]
) -> dict[str, Path | str]:
    if (run.path / "bilm").is_dir() and not bilms:
        return {f"after: {run.path}": run.path}
    place = bilm_of(run, packages=packages, bilms=bilms)
    return {f"biLM of {run.path}: {place}": place}


def _page(runs: Sequence[ReportedRun], neighbors: Mapping[str, Neighbors]) -> str:
    paths = [each.run.path for each in runs]
    names = [each.name for each in runs]
    is_single = len(runs) == 1
    return render(
        "report.html",
        title=", ".join(names),
        runs=runs,
        scores={} if is_single else _compared_scores(runs),
        settings=differing_settings([each.config for each in runs]),
        facts={each.name: _facts(each) for each in runs},
        metrics={each.name: _final_metrics(each.metrics) for each in runs},
        panels=read_panels(paths[0])
        if is_single
        else common_panels(dict(zip(names, paths, strict=True))),
        line_chart=line_chart,
        shortened=shortened,
        strongest=strongest,
        shaded_words=shaded_words,
        colors=COLORS,
        calibrations={each.name: each.run.read(each.run.calibration) for each in runs},
        reliability_diagram=reliability_diagram,
        neighbors=neighbors,
        layers=sorted({layer for result in neighbors.values() for layer in result.by_layer}),
        documents={
            "All metrics": "metrics",
            "Configuration, every default written out": "config",
            "Versions, machine and digests": "metadata",
        },
        as_json=lambda value: json.dumps(value, indent=2),
    )


def _compared_scores(runs: Sequence[ReportedRun]) -> dict[str, list[str]]:
    """Return the scores of the best weights by name, for each run; those of classes are apart."""
    classes = [f"-{name}" for each in runs for name in each.by_class if name != "overall"]
    shown = [
        {
            name.removeprefix(_VALIDATION): _shown(name, value)
            for name, value in each.metrics.items()
            if name.startswith((_VALIDATION, "training_", "num_"))
            and not isinstance(value, str)
            and not (classes and name.endswith(tuple(classes)))
        }
        for each in runs
    ]
    names = dict.fromkeys(name for scores in shown for name in scores)
    return {name: [scores.get(name, "") for scores in shown] for name in names}


def _facts(run: ReportedRun) -> dict[str, str]:
    config, metadata = run.config, run.metadata
    model = config.get("model")
    facts = {"model": model.get("type") if isinstance(model, dict) else model}
    facts |= {name: config.get(name) for name in _FROM_CONFIG}
    facts |= {name: metadata.get(name) for name in _FROM_METADATA}
    command = metadata.get("command")
    facts["command"] = " ".join(map(str, command)) if isinstance(command, list) else command
    return {name: str(value) for name, value in facts.items() if value not in (None, "")}


def _final_metrics(metrics: Mapping[str, Any]) -> dict[str, str]:
    """Return the metrics without those of the last evaluation, which the curves show."""
    return {
        name: _shown(name, value)
        for name, value in metrics.items()
        if f"best_{name}" not in metrics and not isinstance(value, Mapping)
    }


def _shown(name: str, value: object) -> str:
    if name == "training_duration" and isinstance(value, float):
        return str(timedelta(seconds=round(value)))
    if isinstance(value, int):
        return f"{value:,}"
    return show_number(value) if isinstance(value, float) else str(value)
