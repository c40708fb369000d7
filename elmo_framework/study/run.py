"""Run what is missing of a study."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from math import inf, nan

from filelock import Timeout

from elmo_framework import console
from elmo_framework.console import plural
from elmo_framework.errors import ConfigError, RunError, StoppedError
from elmo_framework.io.files import remove, remove_folder
from elmo_framework.study.estimate import minutes_left
from elmo_framework.study.executor import JobEnd, RunJob, Workers
from elmo_framework.study.report import InterimResults
from elmo_framework.study.state import PlannedRun, StudyState
from elmo_framework.training.callback import METRICS_LOG
from elmo_framework.training.interrupt import Interrupt, interrupts

_POLL_SECONDS, _REFRESH_SECONDS = 0.5, 5.0
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


def run_study(state: StudyState, workers: Workers, *, packages: Sequence[str] = ()) -> StudyResult:
    """Train every run of a study that has no record, several at a time.

    Any number of processes may do so in the same folder; each run is locked by the one that trains
    it. A run that fails is reported, and tried again at the next call.

    Args:
        state: the study in its folder.
        workers: train the runs.
        packages: plugins named on the command line.

    Raises:
        RunError: records or runs are of another config.
        StoppedError: the user asked for a stop; the runs have saved checkpoints.
    """
    state = replace(state, num_jobs=workers.num_free)
    require_unchanged(state)
    if state.is_final:
        require_test_data(state)
    with interrupts() as interrupt:
        return _Loop(state, workers, (*packages, *state.study.plugins)).run(interrupt)


def is_finished(state: StudyState) -> bool:
    """Return whether no run of a study is missing, so that nothing has to be started."""
    try:
        runs = state.runs()
    except ConfigError:  # of a trial; the check of the cells reports more than the first one
        return False
    if not runs or any(state.state(run) != "done" for run in runs):
        return False
    return state.study.search is None or all(
        state.state(run) == "done" for run in replace(state, num_jobs=1).runs()
    )


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
            with _locked(state, name):
                remove_folder(state.folder.run(name).path)
                for path in state.folder.files_of_record(name):
                    remove(path)
            state.forget(run.plan)


def _duration(minutes: float) -> str:
    return f"{minutes:.1f} minutes" if minutes >= 1 else plural(round(60 * minutes), "second")


@contextmanager
def _locked(state: StudyState, name: str) -> Iterator[None]:
    try:
        with state.folder.lock(name).acquire(timeout=0):
            yield
    except Timeout as error:
        raise RunError(f"{name}: another process is training this run; stop it first") from error


def _is_changed(state: StudyState, run: PlannedRun) -> bool:
    return state.state(run) == "changed"


@dataclass
class _Loop:
    """Submits runs until all are done.

    Attributes:
        state: of the study.
        workers: train the runs.
        packages: plugins named on the command line.
        open_runs: neither done nor running here; `state.running` has those.
        ends: of the jobs that have ended.
        results: writes tables and pictures of the records so far.
    """

    state: StudyState
    workers: Workers
    packages: tuple[str, ...]
    open_runs: list[PlannedRun] = field(default_factory=list)
    ends: list[JobEnd] = field(default_factory=list)
    results: InterimResults = field(default_factory=InterimResults)
    _num_runs: int = 0
    _num_further: int = 0
    _refreshed_at: float = -inf

    def run(self, interrupt: Interrupt) -> StudyResult:
        self._refresh()
        ends: Sequence[JobEnd] = ()
        while self.open_runs or self.state.running:
            self._submit()
            if ends:
                self.results.update(self.state)  # while all workers are busy
            if not self.state.running:
                time.sleep(_POLL_SECONDS)  # other processes train the rest
            ends = self.workers.wait(_POLL_SECONDS)
            for end in ends:
                self._note(end)
            if interrupt.signal_name is not None:
                self._stop(interrupt.signal_name)
            is_old = time.monotonic() - self._refreshed_at > _REFRESH_SECONDS
            if ends or (is_old and self.workers.num_free > 0):
                self._refresh()
        failures = [end for end in self.ends if end.outcome == "failed"]
        return StudyResult(len({end.name for end in self.ends if end.outcome == "done"}), failures)

    def _refresh(self) -> None:
        """Find the runs that are still to be done; a search or other processes change them."""
        runs, known = self.state.runs(), {*self.state.running, *self.state.failed}
        self._num_further, self._refreshed_at = self.state.num_further_runs, time.monotonic()
        self._num_runs = len(runs) + self._num_further
        self.open_runs = [
            run for run in runs if run.plan.name not in known and self.state.state(run) != "done"
        ]

    def _submit(self) -> None:
        while self.workers.num_free > 0 and (run := next(self._candidates(), None)) is not None:
            self.open_runs.remove(run)
            self.state.running[run.plan.name] = run
            self.workers.submit(
                RunJob(
                    run.plan,
                    self.state.folder.path,
                    packages=self.packages,
                    is_final=self.state.is_final and run.is_chosen,
                    # The best trial is trained to the end with the other seeds.
                    search=None if run.is_chosen else self.state.study.search,
                )
            )

    def _candidates(self) -> Iterator[PlannedRun]:
        """Yield the open runs that no other process trains.

        Last come those that would wait for layers that a running job computes: all that compute
        layers of one biLM share a lock.
        """
        computing = {
            bilm
            for run in self.state.running.values()
            if not self._has_layers(run)
            for bilm in run.cell.bilms
        }
        ordered = sorted(self.open_runs, key=lambda run: bool(computing & run.cell.bilms))
        return (run for run in ordered if self._is_open(run))

    def _has_layers(self, run: PlannedRun) -> bool:
        """Return whether a run has computed its layers: then it trains."""
        return (self.state.folder.run(run.plan.name).path / METRICS_LOG).exists()

    def _is_open(self, run: PlannedRun) -> bool:
        """Return whether no other process trains a run, or has finished it since the refresh."""
        is_locked = self.state.folder.is_locked(run.plan.name)
        return not is_locked and self.state.state(run) != "done"

    def _note(self, end: JobEnd) -> None:
        run = self.state.running.pop(end.name)
        if end.outcome == "busy":
            return
        self.ends.append(end)
        log = self.state.folder.log(end.name)
        if end.outcome == "failed":
            self.state.failed[end.name] = end.message
            message = "".join(f"\n  {line}" for line in end.message.splitlines())
            console.info(f"{end.name} failed (log: {log}):{message}")
        elif end.outcome == "done":
            console.info(f"{self._counted()} {end.name}: {self._summary(run)}{self._left()}")

    def _stop(self, signal_name: str) -> None:
        console.info(
            f"{signal_name}: waiting for checkpoints of {plural(len(self.state.running), 'run')}"
        )
        self.workers.stop()
        raise StoppedError(
            f"Stopped by {signal_name}; checkpoints saved. Run the same command again to resume."
        )

    def _counted(self) -> str:
        num_open = len(self.open_runs) + len(self.state.running) + len(self.state.failed)
        num_open += self._num_further
        return f"[{self._num_runs - num_open}/{self._num_runs}]"

    def _summary(self, run: PlannedRun) -> str:
        record = self.state.record(run.plan)
        if record is None:
            return "its record is gone"
        metric = run.plan.metric[1:]
        score = record.validation.get(metric, nan)
        tested = "" if record.test is None else f" (test {record.test.get(metric, nan):.4g})"
        return f"{metric} {score:.4g}{tested} in {_duration(record.minutes)}"

    def _left(self) -> str:
        minutes = minutes_left(self.state, [*self.open_runs, *self.state.running.values()])
        if not minutes:
            return ""
        num_jobs = len(self.state.running) + self.workers.num_free
        return f"; {timedelta(seconds=round(60 * minutes / num_jobs))} left"
