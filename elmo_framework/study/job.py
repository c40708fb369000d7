"""One run of a study, from its training to its record, in a process of its own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from elmo_framework.study.plan import RunPlan
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


def execute(job: RunJob) -> JobEnd:
    """Train a run or resume it, then write its record; messages go to its log.

    Never raises: an error is written to the log, and is the message of the result.
    """
    raise NotImplementedError
