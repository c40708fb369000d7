"""The job behind `elmo report`: what a run was, and how it went."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from elmo_framework.analysis.chart import line_chart, reliability_diagram
from elmo_framework.analysis.curves import read_panels
from elmo_framework.analysis.neighbors import Neighbors, NeighborSearch, find_neighbors
from elmo_framework.analysis.page import render, show_number
from elmo_framework.experiment.load_run import bilm_of
from elmo_framework.experiment.run_directory import RunDirectory
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


def write_report(
    run: Path,
    output: Path,
    *,
    search: NeighborSearch | None = None,
    before: str | None = None,
    bilms: Sequence[Path | str] = (),
    packages: Sequence[str] = (),
) -> None:
    """Write a page about a run, also about one that is not finished.

    Args:
        run: its folder.
        output: the path of the page.
        search: for neighbours to show next to the curves, by the biLM that the run trained or
            reads; by default none.
        before: another biLM that is searched with too: its folder, or its name.
        bilms: where a biLM is that the run reads, if it was moved.
        packages: plugins that the run needs besides its own.

    Raises:
        RunError: the run does not exist; or, with `search`, its biLM cannot be located.
        DataError: with `search`: a biLM does not exist, or the search has no result.
        OSError: the page cannot be written.
    """
    directory = RunDirectory.begun(run)
    # Where it goes is looked at before neighbours are, which takes long.
    with writing(output) as file:
        neighbors = {}
        if search is not None:
            places: dict[str, Path | str] = {} if before is None else {f"before: {before}": before}
            places |= _bilm_of_run(directory, bilms, packages)
            neighbors = {name: find_neighbors(bilm, search) for name, bilm in places.items()}
        file.write(_page(directory, neighbors))


def _bilm_of_run(
    run: RunDirectory, bilms: Sequence[Path | str], packages: Sequence[str]
) -> dict[str, Path | str]:
    if (run.path / "bilm").is_dir() and not bilms:
        return {f"after: {run.path}": run.path}
    place = bilm_of(run, packages=packages, bilms=bilms)
    return {f"biLM of {run.path}: {place}": place}


def _page(run: RunDirectory, neighbors: Mapping[str, Neighbors]) -> str:
    config, metadata, metrics = run.read(run.config), run.read(run.metadata), run.read(run.metrics)
    return render(
        "report.html",
        title=run.path.resolve().name,
        tables=[_facts(config, metadata), _final_metrics(metrics)],
        panels=read_panels(run.path),
        line_chart=line_chart,
        calibration=run.read(run.calibration),
        reliability_diagram=reliability_diagram,
        neighbors=neighbors,
        layers=sorted({layer for result in neighbors.values() for layer in result.by_layer}),
        documents={
            "All metrics": json.dumps(metrics, indent=2),
            "Configuration, every default written out": json.dumps(config, indent=2),
            "Versions, machine and digests": json.dumps(metadata, indent=2),
        },
    )


def _facts(config: Mapping[str, Any], metadata: Mapping[str, Any]) -> dict[str, str]:
    model = config.get("model")
    facts = {"model": model.get("type") if isinstance(model, dict) else model}
    facts |= {name: config.get(name) for name in _FROM_CONFIG}
    facts |= {name: metadata.get(name) for name in _FROM_METADATA}
    command = metadata.get("command")
    facts["command"] = " ".join(map(str, command)) if isinstance(command, list) else command
    return {name: str(value) for name, value in facts.items() if value not in (None, "")}


def _final_metrics(metrics: Mapping[str, Any]) -> dict[str, str]:
    """Return the metrics without those of the last evaluation, which the curves show."""
    names = [name for name in metrics if f"best_{name}" not in metrics]
    return {name: _shown(name, metrics[name]) for name in names}


def _shown(name: str, value: object) -> str:
    if name == "training_duration" and isinstance(value, float):
        return str(timedelta(seconds=round(value)))
    if isinstance(value, int):
        return f"{value:,}"
    return show_number(value) if isinstance(value, float) else str(value)
