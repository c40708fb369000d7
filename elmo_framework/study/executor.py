"""Family Executor: where the runs of a study are trained."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from elmo_framework.config.registry import Registrable
from elmo_framework.study.run_plan import RunPlan
from elmo_framework.study.search import Search

Outcome: TypeAlias = Literal["done", "failed", "stopped", "busy"]
"""`stopped`: by a signal, with a checkpoint. `busy`: another process trains this run."""


@dataclass(frozen=True)
class RunJob:
    """What a process needs to do a run; it can be pickled.

    Attributes:
        plan: of the run.
        folder: of the study.
        packages: plugins named on the command line.
        is_final: whether the best weights are scored on the test data, too.
        search: of a study with a search.
    """

    plan: RunPlan
    folder: Path
    packages: tuple[str, ...] = ()
    is_final: bool = False
    search: Search | None = None


@dataclass(frozen=True)
class JobEnd:
    """The end of a job.

    Attributes:
        name: of the run.
        outcome: how it ended.
        message: why it failed.
    """

    name: str
    outcome: Outcome
    message: str = ""


class Workers(ABC):
    """Trains runs somewhere, several at a time."""

    @property
    @abstractmethod
    def num_free(self) -> int:
        """How many more jobs can be submitted now."""

    @abstractmethod
    def submit(self, job: RunJob) -> None:
        """Begin `execute(job)` of `study/job.py` in another process, and return at once."""

    @abstractmethod
    def wait(self, timeout: float) -> Sequence[JobEnd]:
        """Return the jobs that have ended since the last call; wait at most `timeout` seconds.

        Returns at once if one has ended, or if none is running.
        """

    @abstractmethod
    def stop(self) -> None:
        """Ask all jobs to end with a checkpoint, as SIGTERM does, and wait until they have."""


class Executor(Registrable, ABC):
    """Where the runs of a study are trained."""

    @abstractmethod
    def start(self, num_jobs: int | None) -> AbstractContextManager[Workers]:
        """Return the workers; no process of theirs is left when the context ends.

        A process whose `elmo study` is gone must end too, or its run stays locked until it does.

        Args:
            num_jobs: of `--jobs`: how many runs are trained at a time; None to decide here.
        """
