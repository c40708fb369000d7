"""Run what is missing of a study."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from math import nan

from filelock import Timeout

from elmo_framework import console
from elmo_framework.console import plural
from elmo_framework.errors import RunError, StoppedError
from elmo_framework.io.files import remove, remove_folder
from elmo_framework.study.estimate import minutes_left
from elmo_framework.study.executor import JobEnd, RunJob, Workers
from elmo_framework.study.state import PlannedRun, StudyState
from elmo_framework.training.callback import METRICS_LOG
from elmo_framework.training.interrupt import Interrupt, interrupts

_POLL_SECONDS = 0.5
_SHOWN_CHANGES = 5


@dataclass(frozen=True)
class StudyResult:
    """What a call of `run_study` has come to.

    Attributes:
        num_done: runs that were finished here.
        failures: the runs that failed here.
    """

    num_done: int
    failures: Sequence[JobEnd]


def run_study(
    state: StudyState, *, num_jobs: int | None = None, packages: Sequence[str] = ()
) -> StudyResult:
    """Train every run of a study that has no record, several at a time.

    Any number of processes may do so in the same folder; each run is locked by the one that trains
    it. A run that fails is reported, and tried again at the next call.

    Args:
        state: the study in its folder.
        num_jobs: how many runs are trained at a time; None to let the executor decide.
        packages: plugins named on the command line.

    Raises:
        RunError: records or runs are of another config.
        StoppedError: the user asked for a stop; the runs have saved checkpoints.
    """
    require_unchanged(state)
    if state.is_final:
        require_test_data(state)
    with interrupts() as interrupt, ExitStack() as stack:
        workers = None
        if any(state.state(run) != "done" for run in state.runs()):
            workers = stack.enter_context(state.study.executor.start(num_jobs))
        if workers is None:
            return StudyResult(0, ())
        return _Loop(state, workers, tuple(packages)).run(interrupt)


def require_unchanged(state: StudyState) -> None:
    """Refuse records and unfinished runs of another config.

    Raises:
        RunError: with their names and the keys that differ.
    """
    changed = {run.plan.name: state.changes(run) for run in state.runs() if _is_changed(state, run)}
    if changed:
        listed = "".join(
            f"\n  {name}: {'; '.join(keys[:_SHOWN_CHANGES])}" for name, keys in changed.items()
        )
        raise RunError(
            f"{state.folder.path}: these runs were made with another config:{listed}\n"
            "rename the variant, choose another --serialization-dir, or remove these runs and "
            "their records with --force"
        )


def require_test_data(state: StudyState) -> None:
    """Raise RunError if `--final` has nothing to score on for some config."""
    plans = [cell.plan for cell in state.cells]
    lacking = {
        plan.config
        for plan in plans
        if plan.test_data_path is None and not plan.raw.get("test_fraction")
    }
    if lacking:
        names = ", ".join(sorted(lacking))
        raise RunError(f"--final needs a test_data_path or a test_fraction; not set in: {names}")


def remove_changed(state: StudyState) -> None:
    """Remove records and unfinished runs of another config."""
    for run in state.runs():
        if _is_changed(state, run):
            name = run.plan.name
            with state.folder.lock(name):
                remove_folder(state.folder.run(name).path)
                for path in state.folder.files_of_record(name):
                    remove(path)
            state.forget(run.plan)


def _is_changed(state: StudyState, run: PlannedRun) -> bool:
    return state.state(run) == "changed"


@dataclass
class _Loop:
    """Submits runs until all are done.

    Attributes:
        state: of the study.
        workers: train the runs.
        packages: plugins named on the command line.
        running: by name.
        ends: of the jobs that have ended.
    """

    state: StudyState
    workers: Workers
    packages: tuple[str, ...]
    running: dict[str, PlannedRun] = field(default_factory=dict)
    ends: list[JobEnd] = field(default_factory=list)

    def run(self, interrupt: Interrupt) -> StudyResult:
        while self._submit() or self.running:
            for end in self.workers.wait(_POLL_SECONDS):
                self._note(end)
            if not self.running:
                time.sleep(_POLL_SECONDS)  # the rest is trained by other processes
            if interrupt.signal_name is not None:
                self._stop(interrupt.signal_name)
        failures = [end for end in self.ends if end.outcome == "failed"]
        num_done = sum(end.outcome == "done" for end in self.ends)
        return StudyResult(num_done, failures)

    def _submit(self) -> bool:
        """Submit runs while workers are free; return whether any run is still to be done."""
        open_runs = list(self._open_runs())
        while self.workers.num_free > 0:
            run = next(self._candidates(open_runs), None)
            if run is None:
                break
            open_runs.remove(run)
            self.running[run.plan.name] = run
            self.workers.submit(
                RunJob(
                    run.plan,
                    self.state.folder.path,
                    packages=self.packages,
                    is_final=self.state.is_final and run.is_chosen,
                    search=self.state.study.search,
                )
            )
        return bool(open_runs)

    def _open_runs(self) -> Iterator[PlannedRun]:
        for run in self.state.runs():
            name = run.plan.name
            is_ours = name in self.running or name in self.state.failed
            if not is_ours and self.state.state(run) != "done":
                yield run

    def _candidates(self, open_runs: Sequence[PlannedRun]) -> Iterator[PlannedRun]:
        """Yield runs that no other process trains.

        First those that need not wait for layers that a running job computes: all sources of
        layers of one biLM share a lock.
        """
        computing = {
            bilm
            for run in self.running.values()
            if not self._has_layers(run)
            for bilm in run.cell.bilms
        }
        waiting = [run for run in open_runs if computing & run.cell.bilms]
        for run in [*(run for run in open_runs if run not in waiting), *waiting]:
            if self._is_free(run):
                yield run

    def _has_layers(self, run: PlannedRun) -> bool:
        """Return whether a run has computed its layers: then it trains."""
        return (self.state.folder.run(run.plan.name).path / METRICS_LOG).exists()

    def _is_free(self, run: PlannedRun) -> bool:
        try:
            with self.state.folder.lock(run.plan.name).acquire(timeout=0):
                return True
        except Timeout:
            return False

    def _note(self, end: JobEnd) -> None:
        run = self.running.pop(end.name)
        if end.outcome == "busy":
            return
        self.ends.append(end)
        log = self.state.folder.log(end.name)
        if end.outcome == "failed":
            self.state.failed.add(end.name)
            message = "".join(f"\n  {line}" for line in end.message.splitlines())
            console.info(f"{end.name} failed (log: {log}):{message}")
        elif end.outcome == "done":
            console.info(f"{self._counted()} {end.name}: {self._summary(run)}{self._left()}")

    def _stop(self, signal_name: str) -> None:
        console.info(
            f"{signal_name}: waiting for checkpoints of {plural(len(self.running), 'run')}"
        )
        self.workers.stop()
        raise StoppedError(
            f"Stopped by {signal_name}; checkpoints saved. Run the same command again to resume."
        )

    def _counted(self) -> str:
        runs = self.state.runs()
        num_done = sum(self.state.state(run) == "done" for run in runs)
        return f"[{num_done}/{len(runs)}]"

    def _summary(self, run: PlannedRun) -> str:
        record = self.state.record(run.plan)
        if record is None:
            return "its record is gone"
        metric = run.plan.metric[1:]
        score = record.validation.get(metric, nan)
        tested = "" if record.test is None else f" (test {record.test.get(metric, nan):.4g})"
        return f"{metric} {score:.4g}{tested} in {record.minutes:.1f} minutes"

    def _left(self) -> str:
        minutes = minutes_left(self.state)
        if not minutes:
            return ""
        num_jobs = max(1, len(self.running) + self.workers.num_free)
        return f"; {timedelta(seconds=round(60 * minutes / num_jobs))} left"
