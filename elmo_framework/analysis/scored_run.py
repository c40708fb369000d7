"""Runs scored on a file, or read from the records of a study, for statistics."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias, final

from pydantic import ValidationError

from elmo_framework.config import plain
from elmo_framework.console import ProgressBar
from elmo_framework.errors import RunError, shown
from elmo_framework.experiment.load_run import load
from elmo_framework.experiment.run_directory import RunDirectory
from elmo_framework.experiment.terms import ExampleTerms, ScoreFunction, head_class, score_function
from elmo_framework.io.formats import check_format

EvaluationSplit: TypeAlias = Literal["validation", "test"]

RECORD_FORMAT = 1
"""The format number of records of a study."""


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
    split: EvaluationSplit = "validation",
    device: str = "auto",
    packages: Sequence[str] = (),
    bilms: Sequence[Path | str] = (),
) -> list[ScoredRun]:
    """Score runs on a file, or read their records.

    Args:
        paths: the folders of runs, or records of a study (`results/NAME.json`).
        file: to score on; by default the data of the runs' configs.
        split: which of these data: `validation`, or `test`, which a record has after `--final`.
        device: `auto`, `cpu` or `cuda`.
        packages: plugins to import in addition to those of the runs.
        bilms: where the biLMs of the runs are, if they were moved.

    Raises:
        RunError: a run cannot be loaded, or has no such data; the data of two runs differ; or there
            is a record and a file.
        DataError: the file cannot be read, or has labels that a run does not know.
    """
    folders = [path for path in paths if path.suffix != ".json"]
    if file is not None and len(folders) < len(paths):
        raise RunError("a record has scores of the data of its config only; compare without --file")
    if file is None:
        _require_same_data([RunDirectory.existing(path) for path in folders], split)
    runs = []
    with ProgressBar("scoring", total=len(paths), unit="run") as progress:
        for path in paths:
            if path.suffix == ".json":
                runs.append(_of_record(path, split))
            else:
                run = load(path, device=device, packages=packages, bilm=bilms)
                scored = run.score(file, split=split)
                to_json = run.head().task.to_json
                predictions = [to_json(*pair) for pair in scored.predictions]
                assert run.run is not None
                config = run.run.read(run.run.config)
                runs.append(ScoredRun(str(path), config, scored.terms, predictions))
            progress.advance(1)
    return runs


@dataclass(frozen=True)
class _RecordedTrainer:
    validation_metric: str


@dataclass(frozen=True)
class _RecordedModel:
    type: str
    metrics: list[Any] | None = None


@dataclass(frozen=True)
class _RecordedConfig:
    model: _RecordedModel
    trainer: _RecordedTrainer
    random_seed: int
    plugins: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _RecordedRun:
    """What is read of the config in a record."""

    experiment: _RecordedConfig


def read_fields(path: Path, *types: Any) -> dict[str, Any]:
    """Read the record of a run: its config can be compared.

    Args:
        path: of the record.
        types: dataclasses with further fields that it must have.

    Raises:
        RunError: it is of a newer format.
        ValueError: it is damaged, with the reason.
        FileNotFoundError: it does not exist.
    """
    content = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(content, dict):
        raise ValueError(f"expected an object, found {shown(content)}")
    versions = content.get("versions")
    writer = versions.get("elmo_framework") if isinstance(versions, dict) else None
    about = {"format": content.get("format", 1), "elmo_framework": writer}
    check_format(about, name="a record", supported=RECORD_FORMAT, path=path, error=RunError)
    for each in (*types, _RecordedRun):
        try:
            plain.read(each, content)
        except ValidationError as error:
            raise ValueError(str(plain.problems(error, content, "")[0])) from error
    return content


def _of_record(path: Path, split: EvaluationSplit) -> ScoredRun:
    try:
        config = read_fields(path)["experiment"]
    except ValueError as error:
        raise RunError(f"{path}: not the record of a run of a study: {error}") from error
    terms = path.with_name(f"{path.stem}.{split}.npz")
    if split == "test" and not terms.is_file():
        raise RunError(f"{path}: this run has no scores of test data; run `elmo study ... --final`")
    return ScoredRun(str(path), config, ExampleTerms.load(terms), ())


def _require_same_data(runs: Sequence[RunDirectory], split: EvaluationSplit) -> None:
    """Check that the configs of runs have the same data, before any run is loaded."""
    data = [_data(run, split) for run in runs]
    for run, its_data in zip(runs, data, strict=True):
        if its_data != data[0]:
            configs = [each.read(each.config) for each in (runs[0], run)]
            _require_same_task(str(runs[0].path), configs[0], str(run.path), configs[1])
            raise RunError(
                f"the {split} data of {runs[0].path} and {run.path} differ; pass --file to score "
                "both on the same file"
            )


def _data(run: RunDirectory, split: EvaluationSplit) -> tuple[str, float | None]:
    """Return the digest of the data of a config, and the fraction of them that is held out."""
    config = run.read(run.config)
    path, fraction = config.get(f"{split}_data_path"), config.get(f"{split}_fraction")
    if path is None and fraction is None:
        raise RunError(
            f"{run.path}: this run has no {split} data; pass --file, or compare the records of a "
            "study in place of its runs"
        )
    path = path or config["train_data_path"]
    return run.read_digests().get("data", {}).get(path) or path, fraction


def require_comparable(runs: Sequence[ScoredRun]) -> None:
    """Check that runs are different runs of one task, scored on the same examples.

    Raises:
        RunError: they are not.
    """
    first = runs[0]
    for run in runs[1:]:
        _require_same_task(first.name, first.config, run.name, run.config)
        if run.terms.digest != first.terms.digest:
            sizes = (len(each.terms.groups) for each in (first, run))
            counted = "{:,} and {:,} examples".format(*sizes)
            raise RunError(
                f"{first.name} and {run.name} read different texts or labels in the same file "
                f"({counted}); compare runs whose readers agree"
            )


def _require_same_task(
    name: str, config: Mapping[str, Any], other: str, config_of_other: Mapping[str, Any]
) -> None:
    tasks = [
        type(head_class(each, source=source).task)
        for source, each in ((name, config), (other, config_of_other))
    ]
    if tasks[0] is not tasks[1]:
        types = f"{config['model']['type']} and {config_of_other['model']['type']}"
        raise RunError(f"{name} and {other} are runs of different tasks: {types}")
