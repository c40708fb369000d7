"""Runs scored on a file, or read from the records of a study, for statistics."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from elmo_framework.console import ProgressBar
from elmo_framework.errors import RunError
from elmo_framework.experiment.load_run import load
from elmo_framework.experiment.run_directory import RunDirectory
from elmo_framework.experiment.terms import ExampleTerms, ScoreFunction, head_class, score_function


@final
@dataclass(frozen=True)
class ScoredRun:
    """A run, and what each example of a file adds to its scores.

    Attributes:
        name: its folder, or the file of its record.
        config: with all defaults.
        terms: of the examples.
        predictions: for each example, as JSON types; empty if the run was read from a record.
    """

    name: str
    config: Mapping[str, Any]
    terms: ExampleTerms
    predictions: Sequence[Mapping[str, Any]]

    @property
    def seed(self) -> int:
        return int(self.config["random_seed"])

    @property
    def metric(self) -> str:
        """The score that selected its weights, with its sign."""
        return str(self.config["trainer"]["validation_metric"])

    def score_function(self) -> ScoreFunction:
        return score_function(self.config, source=self.name)


def scored_runs(
    paths: Sequence[Path],
    *,
    file: Path | None = None,
    device: str = "auto",
    packages: Sequence[str] = (),
    bilms: Sequence[Path | str] = (),
) -> list[ScoredRun]:
    """Score runs on a file, or read their records.

    Args:
        paths: the folders of runs, or records of a study (`results/NAME.json`), which are of the
            validation data of their runs.
        file: to score on; by default the validation data of the runs.
        device: `auto`, `cpu` or `cuda`.
        packages: plugins to import in addition to those of the runs.
        bilms: where the biLMs of the runs are, if they were moved.

    Raises:
        RunError: a run cannot be loaded, or has no validation data; the validation data of two runs
            differ; or there is a record and a file.
        DataError: the file cannot be read, or has labels that a run does not know.
    """
    folders = [path for path in paths if path.suffix != ".json"]
    if file is not None and len(folders) < len(paths):
        raise RunError("a record has scores of the validation data only; compare without --file")
    if file is None:
        _require_one_file([RunDirectory.existing(path) for path in folders])
    runs = []
    with ProgressBar("scoring", total=len(paths), unit="run") as progress:
        for path in paths:
            if path.suffix == ".json":
                runs.append(_of_record(path))
            else:
                run = load(path, device=device, packages=packages, bilm=bilms)
                scored = run.score(file or run.experiment.paths["validation"])
                to_json = run.head().task.to_json
                predictions = [to_json(*pair) for pair in scored.predictions]
                config = RunDirectory(path).read(RunDirectory(path).config)
                runs.append(ScoredRun(str(path), config, scored.terms, predictions))
            progress.advance(1)
    return runs


def _of_record(path: Path) -> ScoredRun:
    try:
        config = json.loads(path.read_text(encoding="utf-8"))["experiment"]
        config["random_seed"], config["trainer"]["validation_metric"], config["model"]["type"]
    except (ValueError, KeyError, TypeError) as error:
        raise RunError(f"{path}: not the record of a run of a study: {error!r}") from error
    terms = ExampleTerms.load(path.with_name(f"{path.stem}.validation.npz"))
    return ScoredRun(str(path), config, terms, ())


def _require_one_file(runs: Sequence[RunDirectory]) -> None:
    """Check that runs were validated on the same data, before any is loaded."""
    first: tuple[RunDirectory, str] | None = None
    for run in runs:
        path = run.read(run.config).get("validation_data_path")
        if path is None:
            raise RunError(f"{run.path}: this run has no validation data; pass --file")
        content = run.read_digests().get("data", {}).get(path) or path
        if first is None:
            first = run, content
        elif content != first[1]:
            raise RunError(
                f"the validation data of {first[0].path} and {run.path} differ; pass --file to "
                "score both on the same file"
            )


def require_comparable(runs: Sequence[ScoredRun]) -> None:
    """Check that runs are different runs of one task, scored on the same examples.

    Raises:
        RunError: they are not.
    """
    first = runs[0]
    task = head_class(first.config, source=first.name).task
    for run in runs[1:]:
        other = head_class(run.config, source=run.name)
        if type(other.task) is not type(task):
            types = (each.config["model"]["type"] for each in (first, run))
            raise RunError(
                "{} and {} are runs of different tasks: {} and {}".format(
                    first.name, run.name, *types
                )
            )
        if run.terms.digest != first.terms.digest:
            sizes = (len(each.terms.groups) for each in (first, run))
            counted = "{:,} and {:,} examples".format(*sizes)
            raise RunError(
                f"{first.name} and {run.name} read different texts or labels in the same file "
                f"({counted}); compare runs whose readers agree"
            )
