"""The folder of a study: where runs, logs, locks and records are."""

from __future__ import annotations

from pathlib import Path

from filelock import FileLock, Timeout

from elmo_framework.analysis.scored_run import EvaluationSplit
from elmo_framework.experiment.run_directory import RunDirectory
from elmo_framework.study.record import CellKey


class StudyFolder:
    """The folder of a study; NAME is `CONFIG/VARIANT/RUN`, such as `ner/mini/seed-1`.

    | path | what |
    |---|---|
    | `results/NAME.json` | the record of a finished run |
    | `results/NAME.validation.npz` | what each example adds to its scores (`ExampleTerms`) |
    | `results/NAME.test.npz` | the same of the test data, after `--final` |
    | `runs/NAME/` | the run directory; not needed once the record exists |
    | `logs/NAME.log` | the messages of its training |
    | `search/CELL/` | files of a search |
    | `table.md`, `report.html`, `pictures/` | what the records show |
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.results, self.runs = path / "results", path / "runs"

    def run(self, name: str) -> RunDirectory:
        return RunDirectory(self.runs / name)

    def record(self, name: str) -> Path:
        return self.results / f"{name}.json"

    def files_of_record(self, name: str) -> list[Path]:
        """Return the files of a record; the one without which there is none is first."""
        return [self.record(name), self.terms(name, "validation"), self.terms(name, "test")]

    def terms(self, name: str, split: EvaluationSplit) -> Path:
        return self.results / f"{name}.{split}.npz"

    def log(self, name: str) -> Path:
        """Return the log of a run, which is not in `runs`, so that patterns find runs only."""
        return self.path / "logs" / f"{name}.log"

    def search(self, cell: CellKey) -> Path:
        config, variant, fraction = cell
        return self.path / "search" / config / variant / f"fraction-{fraction}"

    def lock(self, name: str) -> FileLock:
        """Return the lock of a run, which its process holds until the record is written."""
        path = self._lock_file(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        return FileLock(path)

    def is_locked(self, name: str) -> bool:
        """Return whether a process holds the lock of a run."""
        path = self._lock_file(name)
        if not path.exists():
            return False
        try:
            with FileLock(path).acquire(timeout=0):
                return False
        except Timeout:
            return True

    def _lock_file(self, name: str) -> Path:
        path = self.runs / name
        return path.with_name(f".{path.name}.lock")
