"""Records of finished runs; tables and pictures are made from them alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeAlias

from elmo_framework.analysis.scored_run import RECORD_FORMAT, read_fields
from elmo_framework.errors import RunError
from elmo_framework.io.files import write_text

CellKey: TypeAlias = tuple[str, str, float]
"""Config, variant and fraction: what the runs of several seeds have in common."""

SEED_MARK = "seed-"
"""Before the seed, at the end of the name of a run."""

_NOT_RECORDED = ("format", "digests", "references", "command", "working_directory")
"""Metadata of a run that have a field of their own or hold paths of the machine."""


@dataclass(frozen=True, kw_only=True)
class Record:
    """What remains of a finished run: `results/NAME.json`.

    Attributes:
        config: the name of the config in the study.
        variant: the name of the variant.
        seed: the `random_seed`.
        fraction: the `train_fraction`.
        trial: the name of a trial of the search; None without a search.
        overrides: of the trial, by dotted key.
        metric: the score that the study compares, with its sign: `+` when larger is better.
        validation: the scores of the best weights on the validation data, by name.
        test: the same on the test data; None before `elmo study --final`.
        monitored: values of parts of the model at the best step, such as layer weights, by name.
        is_pruned: whether the search ended the training early; the scores are then its last.
        training: steps, the best step, seconds, the reason of the end, numbers of parameters.
        minutes: wall-clock time of the training.
        experiment: the config of the run with all defaults, without its test data.
        digests: SHA-256 of the data (`data`, by path relative to the working directory; first the
            training data), of the biLMs and other encoders before training (`bilm`), of other
            files such as word vectors (`files`, by dotted path), and of test data in files of their
            own (`test`).
        versions: of the framework and its libraries, machine, commit.
        origin: the study and the run that it was copied from; None if it was trained here.
    """

    config: str
    variant: str
    seed: int
    fraction: float
    metric: str
    validation: Mapping[str, float]
    training: Mapping[str, Any]
    minutes: float
    experiment: Mapping[str, Any]
    digests: Mapping[str, Any]
    versions: Mapping[str, Any]
    trial: str | None = None
    overrides: Mapping[str, Any] = field(default_factory=dict)
    test: Mapping[str, float] | None = None
    monitored: Mapping[str, float] = field(default_factory=dict)
    is_pruned: bool = False
    origin: str | None = None

    @property
    def cell(self) -> CellKey:
        return self.config, self.variant, self.fraction

    @property
    def name(self) -> str:
        return run_name(
            self.config, self.variant, fraction=self.fraction, trial=self.trial, seed=self.seed
        )

    def score(self, metric: str | None = None) -> float:
        """Return a validation score, negated where smaller is better.

        Args:
            metric: with its sign; by default that of the study.

        Raises:
            RunError: the run has no such score.
        """
        metric = metric or self.metric
        if metric[1:] not in self.validation:
            raise RunError(f"{self.name}: no score {metric[1:]!r} in its record")
        value = self.validation[metric[1:]]
        return value if metric[0] == "+" else -value


def run_name(config: str, variant: str, *, fraction: float, trial: str | None, seed: int) -> str:
    """Return the name of a run, which is its path below `runs/` and `results/`."""
    parts = [
        *([] if fraction == 1 else [f"fraction-{fraction}"]),
        *([] if trial is None else [f"trial-{trial}"]),
        f"{SEED_MARK}{seed}",
    ]
    return f"{config}/{variant}/{'-'.join(parts)}"


def recorded_versions(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of a run, or of its environment, that its record keeps as `versions`."""
    return {key: value for key, value in metadata.items() if key not in _NOT_RECORDED}


def write_record(path: Path, record: Record) -> None:
    """Write a record atomically; create its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"format": RECORD_FORMAT, **vars(record)}
    write_text(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def read_record(path: Path) -> Record:
    """Read a record.

    Raises:
        RunError: it is damaged or of a newer format.
        FileNotFoundError: it does not exist.
    """
    try:
        content = read_fields(path, Record)
    except ValueError as error:
        raise RunError(f"{path}: this record is damaged ({error}); remove it") from error
    names = {field.name for field in fields(Record)}
    return Record(**{key: value for key, value in content.items() if key in names})


def read_records(results: Path) -> list[Record]:
    """Read all records in a folder, in the order of their names.

    Raises:
        RunError: one is damaged.
    """
    return [read_record(path) for path in sorted(results.rglob("*.json"))]
