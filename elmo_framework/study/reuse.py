"""Records of other studies for runs that are the same there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from shutil import copyfile

from filelock import Timeout

from elmo_framework import console
from elmo_framework.analysis.scored_run import EvaluationSplit
from elmo_framework.errors import RunError
from elmo_framework.experiment.config_changes import Change
from elmo_framework.experiment.metadata import DATA_KEYS, digests_of_data, digests_of_other_files
from elmo_framework.experiment.references import external_models
from elmo_framework.io.files import replacing
from elmo_framework.study.changes import changed_keys, digest_of_test_data
from elmo_framework.study.folder import StudyFolder
from elmo_framework.study.plan import Cell
from elmo_framework.study.record import Record, read_records, write_record
from elmo_framework.study.state import PlannedRun, StudyState


@dataclass(frozen=True)
class ReusableRecord:
    """A record of another study for a run that is missing.

    Attributes:
        run: the missing one.
        record: as that of the missing run; its `origin` is the other study.
        source: the folder of the other study.
        name: of the run in the other study.
    """

    run: PlannedRun
    record: Record
    source: StudyFolder
    name: str

    def copy_to(self, state: StudyState) -> bool:
        """Write the record and its terms of examples; return whether it is still missing.

        Another process may train the run, or may have trained it since.
        """
        folder, name = state.folder, self.record.name
        with suppress(Timeout), folder.lock(name).acquire(timeout=0):
            state.forget(self.run.plan)
            if not _is_lacking(state, self.run):
                return False
            has_test = self.record.test is not None
            splits: list[EvaluationSplit] = ["validation", "test"] if has_test else ["validation"]
            for split in splits:
                before, now = self.source.terms(self.name, split), folder.terms(name, split)
                if before.is_file():
                    now.parent.mkdir(parents=True, exist_ok=True)
                    with replacing(now) as temporary:
                        copyfile(before, temporary)
            write_record(folder.record(name), self.record)  # last: it says that the run is finished
            return True
        return False


def reusable_records(state: StudyState, folders: Sequence[Path]) -> list[ReusableRecord]:
    """Find missing runs of a study that other studies have: the same config, data and biLMs.

    Data and biLMs are compared by their digests, and may have other paths. All other files, such as
    word vectors, must have the same paths and digests, if the record has any: those of earlier
    versions have none. A run that starts from the weights of another one (`init_from`) is not
    reused, since its record does not say which weights these were.

    Scores on test data are copied with `--final` only; those of earlier copies are added then.

    Args:
        state: of the study.
        folders: of the other studies; the first that has a run counts.

    Raises:
        RunError: a folder has no records, or one of them is damaged.
        DataError: the data cannot be read.
    """
    studies = [StudyFolder(path) for path in folders]
    known = [(study, record) for study in studies for record in _records(study)]
    finder = _RecordFinder(known, state.is_final)
    lacking = (run for run in state.runs() if _is_lacking(state, run))
    return [reusable for run in lacking if (reusable := finder.find(run)) is not None]


def _is_lacking(state: StudyState, run: PlannedRun) -> bool:
    record = state.record(run.plan)
    if record is None:
        return state.state(run) == "missing"
    return record.origin is not None and state.state(run) == "unscored"


def _records(folder: StudyFolder) -> list[Record]:
    records = read_records(folder.results)
    if not records:
        raise RunError(f"--reuse {folder.path}: this folder has no records of a study")
    return records


def reuse_records(state: StudyState, folders: Sequence[Path]) -> None:
    """Copy the records of `reusable_records`, and report them.

    Raises:
        RunError, DataError: as there.
    """
    for reusable in reusable_records(state, folders):
        if reusable.copy_to(state):
            record = reusable.record
            console.info(f"{record.name}: its record is that of {record.origin}")


@dataclass(frozen=True)
class _Content:
    """What the runs of a cell read.

    Attributes:
        data: SHA-256 of the training data, then of the validation data.
        models: SHA-256 of each model in separate files, by its module; None if it has none.
        files: SHA-256 of other files, by their dotted paths.
        keys: where the config names the files that have a SHA-256, and so may have other paths.
        test: SHA-256 of test data of their own.
        has_initial_weights: whether they start from the weights of another run.
    """

    data: list[str]
    models: Mapping[str, str | None]
    files: Mapping[str, str]
    keys: frozenset[str]
    test: str | None
    has_initial_weights: bool

    @classmethod
    def of(cls, cell: Cell) -> _Content:
        experiment, test = cell.parsed.build(), cell.plan.test_data_path
        models = [(each, each.digest()) for each in external_models(cell.parsed)]
        known = (key for each, sha256 in models if sha256 is not None for key in each.keys)
        return cls(
            list(digests_of_data(experiment.files()).values()),
            {each.module: sha256 for each, sha256 in models},
            digests_of_other_files(cell.parsed),
            frozenset([*DATA_KEYS, *known]),
            None if test is None else digest_of_test_data(experiment, Path(test)),
            experiment.init_from is not None,
        )

    def is_of(self, record: Record) -> bool:
        models = record.digests.get("bilm", {})
        return (
            not self.has_initial_weights
            and self.data == list(record.digests.get("data", {}).values())
            and self.files == record.digests.get("files", self.files)
            and all(models.get(name) == sha256 for name, sha256 in self.models.items() if sha256)
        )


@dataclass
class _RecordFinder:
    """Looks for the records of runs.

    Attributes:
        known: folders of other studies, each with a record.
        is_final: whether a record needs scores on the test data.
    """

    known: Sequence[tuple[StudyFolder, Record]]
    is_final: bool
    _contents: dict[int, _Content] = field(default_factory=dict)

    def find(self, run: PlannedRun) -> ReusableRecord | None:
        for folder, record in self.known:
            if self._is_same(run, record):
                own = self._as_record_of(run, folder, record)
                if own.test is not None or not self._needs_test(run):
                    return ReusableRecord(run, own, folder, record.name)
        return None

    def _needs_test(self, run: PlannedRun) -> bool:
        return self.is_final and run.is_chosen

    def _is_same(self, run: PlannedRun, record: Record) -> bool:
        """Return whether a record is of the config of a run, and of the same content."""
        now = run.cell.experiment_of(run.plan)

        def is_moved(change: Change) -> bool:
            return change[0] in self._content(run).keys

        return (
            run.plan.seed == record.seed
            and not record.is_pruned
            and run.plan.metric[1:] in record.validation
            and not changed_keys(record.experiment, now, is_moved=is_moved, given=run.plan.raw)
            and self._content(run).is_of(record)
        )

    def _as_record_of(self, run: PlannedRun, folder: StudyFolder, record: Record) -> Record:
        is_same_test = record.digests.get("test") == self._content(run).test
        return replace(
            record,
            **run.plan.recorded,
            test=record.test if is_same_test and self._needs_test(run) else None,
            origin=record.origin or f"{folder.path.resolve().name}: {record.name}",
        )

    def _content(self, run: PlannedRun) -> _Content:
        key = id(run.cell)
        if key not in self._contents:
            self._contents[key] = _Content.of(run.cell)
        return self._contents[key]
