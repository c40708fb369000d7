"""Studies with made-up records, for tests of what is made from records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from elmo_framework import components
from elmo_framework.analysis.scored_run import EvaluationSplit
from elmo_framework.config.parse import parse
from elmo_framework.experiment.terms import ExampleTerms
from elmo_framework.study.folder import StudyFolder
from elmo_framework.study.plan import cells_of
from elmo_framework.study.record import Record, write_record
from elmo_framework.study.state import StudyState
from elmo_framework.study.study import Study

METRIC = "f1-measure-overall"
CONFIG: dict[str, Any] = {
    "model": {"type": "crf_tagger"},
    "trainer": {"validation_metric": f"+{METRIC}", "optimizer": {"lr": 0.1}},
}


def study_state(folder: Path, *, num_jobs: int = 0, **changes: Any) -> StudyState:
    """Return the state of a study of taggers; by default `mini` against `none` with two seeds."""
    components.load()
    raw = {
        "configs": {"ner": {"config": CONFIG}},
        "variants": {"mini": {}, "none": {}},
        "seeds": [1, 2],
        "comparisons": [["mini", "none"]],
        **changes,
    }
    study = parse(Study, raw, source="study.jsonnet").build()
    configs = {name: each.config for name, each in study.configs.items()}
    cells = cells_of(study, configs, source="study.jsonnet")  # type: ignore[arg-type]
    return StudyState(study, cells, StudyFolder(folder), num_jobs=num_jobs)


def add_record(
    folder: Path,
    variant: str,
    seed: int,
    score: float,
    *,
    test: float | None = None,
    config: str = "ner",
    metric: str = f"+{METRIC}",
    **changes: Any,
) -> Record:
    """Write the record of a run, without terms of examples."""
    record = Record(
        **{
            "config": config,
            "variant": variant,
            "seed": seed,
            "fraction": 1.0,
            "metric": metric,
            "validation": {metric[1:]: score},
            "test": None if test is None else {metric[1:]: test},
            "training": {},
            "minutes": 2.0,
            "experiment": {**CONFIG, "random_seed": seed},
            "digests": {},
            "versions": {},
            **changes,
        }
    )
    write_record(StudyFolder(folder).record(record.name), record)
    return record


def add_terms(
    folder: Path,
    record: Record,
    is_correct: Sequence[int],
    *,
    split: EvaluationSplit = "validation",
    digest: str = "",
) -> None:
    """Write terms of sentences with one name each, which is found or not: F1 is their mean."""
    names = tuple(f"span_f1/{kind}/PER" for kind in ("correct", "predicted", "gold"))
    correct = np.array(is_correct, dtype=np.float64)
    values = np.stack([correct, np.ones_like(correct), np.ones_like(correct)], axis=1)
    numbers = np.arange(len(correct))
    path = StudyFolder(folder).terms(record.name, split)
    path.parent.mkdir(parents=True, exist_ok=True)
    ExampleTerms(names, values, numbers, np.ones_like(numbers), digest).save(path)


def add_run(
    folder: Path, variant: str, seed: int, is_correct: Sequence[int], **changes: Any
) -> Record:
    """Write the record of a run and the terms of its examples."""
    record = add_record(folder, variant, seed, float(np.mean(is_correct)), **changes)
    add_terms(folder, record, is_correct)
    return record


def add_trials(
    folder: Path, scores: Mapping[str, Sequence[int]], variant: str = "mini", **changes: Any
) -> None:
    """Write the runs of trials with the first seed."""
    for number, (trial, is_correct) in enumerate(scores.items()):
        overrides = {"trainer.optimizer.lr": 0.1 * (number + 1)}
        add_run(folder, variant, 1, is_correct, trial=trial, overrides=overrides, **changes)
