"""Small studies, and executors that need no processes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, final

from elmo_framework.config.load import Config
from elmo_framework.study.check import load_study
from elmo_framework.study.executor import Executor, JobEnd, RunJob, Workers
from elmo_framework.study.folder import StudyFolder
from elmo_framework.study.job import execute
from elmo_framework.study.record import Record, write_record
from elmo_framework.study.run_plan import RunPlan
from elmo_framework.study.state import StudyState
from tests.experiment.jobs import DATA, ROOT, TAGGING

SCORE = "f1-measure-overall"


@cache
def _tagger() -> str:
    changes = {**TAGGING, "trainer.num_epochs": 1, "trainer.callbacks": []}
    overrides = [f"{key}={json.dumps(value)}" for key, value in changes.items()]
    return json.dumps(
        Config.load(ROOT / "experiments/ner/baseline.jsonnet", overrides=overrides).raw
    )


def tagger(**changes: Any) -> dict[str, Any]:
    """Return the config of a tagger that is trained in less than a second."""
    return {**json.loads(_tagger()), **changes}


def study(**changes: Any) -> dict[str, Any]:
    """Return a study of two runs."""
    variants = {"none": {}, "wide": {"model": {"encoder": {"hidden_size": 12}}}}
    config = {"config": tagger(), "variants": variants}
    return {"configs": {"ner": config}, "seeds": [1], "executor": "inline", **changes}


def with_test_data(**changes: Any) -> dict[str, Any]:
    config = tagger(test_data_path=str(DATA / "valid.txt"))
    return study(configs={"ner": {"config": config}}, **changes)


def write(folder: Path, raw: dict[str, Any]) -> Path:
    path = folder / "study.json"
    path.write_text(json.dumps(raw))
    return path


def state_of(raw: dict[str, Any], folder: Path, **options: Any) -> StudyState:
    loaded = load_study(Config(raw, "study.json", ""))
    return StudyState(loaded.study, loaded.cells, StudyFolder(folder), **options)


def names(state: StudyState) -> dict[str, str]:
    """Return the states of all runs by their names."""
    return {run.plan.name: state.state(run) for run in state.runs()}


def record_of(plan: RunPlan, state: StudyState, *, score: float = 0.5, **changes: Any) -> Record:
    """Write the record of a run that nobody has trained."""
    run = next(run for run in state.runs() if run.plan.name == plan.name)
    content: dict[str, Any] = {
        **plan.recorded,
        "validation": {SCORE: score},
        "training": {},
        "minutes": 2.0,
        "experiment": run.cell.experiment_of(plan),
        "digests": {"data": {}, "bilm": {}},
        "versions": {},
    }
    record = Record(**{**content, **changes})
    write_record(state.folder.record(plan.name), record)
    return record


@final
@Executor.register("inline")
class InlineExecutor(Executor):
    """Trains runs in this process when they are submitted.

    Args:
        jobs: how many ends are reported at a time.
    """

    job: Callable[[RunJob], JobEnd] = staticmethod(execute)

    def __init__(self, jobs: int = 1) -> None:
        self._jobs = jobs

    @contextmanager
    def start(self, num_jobs: int | None) -> Iterator[Workers]:
        """Yield the workers."""
        yield InlineWorkers(num_jobs or self._jobs)


@final
class InlineWorkers(Workers):
    """Reports the first job that was submitted first; `limit` jobs run at a time."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._jobs: list[RunJob] = []

    @property
    def num_free(self) -> int:
        return self._limit - len(self._jobs)

    def submit(self, job: RunJob) -> None:
        self._jobs.append(job)

    def wait(self, timeout: float) -> Sequence[JobEnd]:
        return [InlineExecutor.job(self._jobs.pop(0))] if self._jobs else []

    def stop(self) -> None:
        self._jobs.clear()
