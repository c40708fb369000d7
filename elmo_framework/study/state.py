"""The state of a study: which of its runs are done, begun or missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Literal, TypeAlias

from filelock import FileLock

from elmo_framework.errors import ConfigError
from elmo_framework.experiment.config_changes import Change, value_at
from elmo_framework.study.changes import changed_keys, is_moved
from elmo_framework.study.folder import StudyFolder
from elmo_framework.study.plan import Cell
from elmo_framework.study.record import CellKey, Record, read_record
from elmo_framework.study.run_plan import RunPlan
from elmo_framework.study.study import Study

RunState: TypeAlias = Literal["done", "unscored", "unfinished", "missing", "changed"]
"""`unscored`: not on the test data yet. `changed`: what is there is of another config."""


@dataclass(frozen=True)
class PlannedRun:
    """A run of a study, the cell that it belongs to, and whether its settings are the best.

    Attributes:
        plan: of the run.
        cell: of the run; with a search, of its trial.
        is_chosen: whether `--final` scores it: all runs but trials that are not the best.
    """

    plan: RunPlan
    cell: Cell
    is_chosen: bool


@dataclass(frozen=True)
class StudyState:
    """A study in its folder.

    Attributes:
        study: built.
        cells: of the study.
        folder: of the study.
        is_final: whether the chosen runs are scored on the test data.
        num_jobs: how many runs are trained at a time; 0 to propose no further trials.
        failed: why runs failed since the start, by their names.
        running: the runs that this process trains now, by their names.
    """

    study: Study
    cells: Sequence[Cell]
    folder: StudyFolder
    is_final: bool = False
    num_jobs: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    running: dict[str, PlannedRun] = field(default_factory=dict)
    _records: dict[str, Record] = field(default_factory=dict)
    _done: set[tuple[str, bool]] = field(default_factory=set)
    _trials: dict[tuple[CellKey, str], Cell] = field(default_factory=dict)

    def runs(self) -> list[PlannedRun]:
        """Return the runs that are known now, those of the first seed first.

        With a search, further runs follow from the scores of these.
        """
        runs = [run for cell in self.cells for run in self._runs_of(cell)]
        order = {seed: index for index, seed in enumerate(self.study.seeds)}
        return sorted(runs, key=lambda run: order[run.plan.seed])

    @property
    def num_further_runs(self) -> int:
        """The number of runs that a search adds later: trials, and other seeds of the best one."""
        return max(0, len(self.cells) * self.study.num_runs_per_cell - len(self.runs()))

    def num_runs_by_state(self) -> Mapping[RunState, int]:
        """Count the runs; those that a search adds later are missing."""
        counts = Counter(self.state(run) for run in self.runs())
        counts["missing"] += self.num_further_runs
        return +counts

    def records(self) -> list[Record]:
        """Return the records of the runs that are known now, and of no others in the folder."""
        return [record for run in self.runs() if (record := self.record(run.plan)) is not None]

    def state(self, run: PlannedRun) -> RunState:
        key = run.plan.name, run.is_chosen
        if key not in self._done and (state := self._state(run)) != "done":
            return state
        self._done.add(key)
        return "done"

    def _state(self, run: PlannedRun) -> RunState:
        name, record = run.plan.name, self.record(run.plan)
        if record is None:
            folder = self.folder.run(name)
            if not folder.config.is_file():
                return "missing"
            return "changed" if self.changes(run) else "unfinished"
        if self.changes(run):
            return "changed"
        is_scored = record.test is not None or not (self.is_final and run.is_chosen)
        return "done" if is_scored else "unscored"

    def changes(self, run: PlannedRun) -> list[str]:
        """List how the config differs from that of the record, or else of the unfinished run."""
        record, folder = self.record(run.plan), self.folder.run(run.plan.name)
        before = folder.read(folder.config) if record is None else record.experiment
        digests = folder.read_digests() if record is None else record.digests
        given = folder.read(folder.given) if record is None else {}
        contents = {sha for kind in ("data", "files") for sha in digests.get(kind, {}).values()}

        def is_same_file(change: Change) -> bool:
            # The config of a run has absolute paths. What is there now, the training compares.
            written = value_at(given, change[0])
            is_written_alike = isinstance(written, str) and written == value_at(
                run.plan.raw, change[0]
            )
            return is_written_alike or is_moved(change, contents)

        now = run.cell.experiment_of(run.plan)
        return changed_keys(before, now, is_moved=is_same_file, given=run.plan.raw)

    def unfinished_cells(self) -> list[Cell]:
        """Return the cells of which a run is not done; with a search, then all cells."""
        try:
            runs = self.runs()
        except ConfigError:  # a check of the cells reports more than the first wrong trial
            return list(self.cells)
        cells = {id(run.cell): run.cell for run in runs if self.state(run) != "done"}
        if self.study.search is not None:
            return list(self.cells) if cells or not runs else []
        return list(cells.values())

    def record(self, plan: RunPlan) -> Record | None:
        """Return the record of a run; None if it is not finished.

        Raises:
            RunError: the record is damaged.
        """
        record = self._records.get(plan.name)
        if record is None or (self.is_final and record.test is None):
            path = self.folder.record(plan.name)
            if not path.is_file():
                return None
            self._records[plan.name] = read_record(path)
        return self._records[plan.name]

    def forget(self, plan: RunPlan) -> None:
        """Read the record of a run again when it is needed."""
        self._records.pop(plan.name, None)

    def _runs_of(self, cell: Cell) -> Iterator[PlannedRun]:
        if self.study.search is None:
            for seed in cell.seeds:
                yield PlannedRun(cell.run(seed), cell, is_chosen=True)
            return
        trials = self._cells_of_trials(cell)
        scores = self._scores(trials)
        scored = [
            (score, each)
            for each in trials
            if (score := scores.get(each.plan.trial or "")) is not None
        ]
        is_over = len(scores) == len(trials)
        best = max(scored, key=lambda each: each[0])[1] if is_over and scored else None
        tried = cell.seeds[: self.study.search.num_seeds]
        for trial in trials:
            for seed in cell.seeds if trial is best else tried:
                yield PlannedRun(trial.run(seed), trial, is_chosen=trial is best)

    def _scores(self, trials: Sequence[Cell]) -> dict[str, float | None]:
        """Return the scores of the trials that have ended, the mean over their seeds."""
        scores: dict[str, float | None] = {}
        for trial in trials:
            plans = self._tried(trial)
            if all(self._has_ended(plan) for plan in plans):
                records = [record for plan in plans if (record := self.record(plan)) is not None]
                values = [
                    record.score(trial.plan.metric) for record in records if not record.is_pruned
                ]
                is_complete = len(values) == len(plans)
                scores[trial.plan.trial or ""] = fmean(values) if is_complete else None
        return scores

    def _is_taken(self, trial: Cell) -> bool:
        """Return whether other processes train all runs that a trial without a score lacks."""
        lacking = [plan.name for plan in self._tried(trial) if not self._has_ended(plan)]
        return all(name not in self.running and self.folder.is_locked(name) for name in lacking)

    def _tried(self, trial: Cell) -> list[RunPlan]:
        """Return the runs that the score of a trial is the mean of."""
        assert self.study.search is not None
        return [trial.run(seed) for seed in trial.seeds[: self.study.search.num_seeds]]

    def _has_ended(self, plan: RunPlan) -> bool:
        return self.record(plan) is not None or plan.name in self.failed

    def _cells_of_trials(self, cell: Cell) -> list[Cell]:
        assert self.study.search is not None
        known_trials = [each for (key, _), each in self._trials.items() if key == cell.plan.cell]
        with self._search_folder(cell) as folder:
            trials = self._propose(cell, known_trials, folder)
            if len(trials) > len(known_trials):  # after a restart, earlier trials may have scores
                trials = self._propose(cell, trials, folder)
        return trials

    def _propose(self, cell: Cell, known: Sequence[Cell], folder: Path) -> list[Cell]:
        """Return the trials that follow from the scores of some of them."""
        assert self.study.search is not None
        scores = self._scores(known)
        num_open = self.num_jobs + sum(
            self._is_taken(trial) for trial in known if trial.plan.trial not in scores
        )
        trials = self.study.search.trials(scores, folder=folder, num_open=num_open)
        for trial in trials:
            key = cell.plan.cell, trial.name
            if key not in self._trials:
                self._trials[key] = cell.of_trial(trial)
        return [self._trials[cell.plan.cell, trial.name] for trial in trials]

    @contextmanager
    def _search_folder(self, cell: Cell) -> Iterator[Path]:
        """Lock the folder of the search of a cell; before the start, nothing is written to it."""
        folder = self.folder.search(cell.plan.cell)
        if not (self.num_jobs or folder.exists()):
            with TemporaryDirectory() as temporary:
                yield Path(temporary)
            return
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.with_name(f".{folder.name}.lock")):
            yield folder
