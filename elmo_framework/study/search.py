"""Family Search: which settings of a space are tried, one after another or all at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmo_framework.config.registry import Registrable
from elmo_framework.config.types import Count
from elmo_framework.errors import ElmoFrameworkError
from elmo_framework.training.callback import Callback


class PrunedError(ElmoFrameworkError):
    """The callback of a search ended a run early: its scores are worse than those of other trials.

    The run counts as finished, without a score for the search.
    """


@dataclass(frozen=True)
class Trial:
    """Settings that a search tries.

    Attributes:
        name: unique within its search and the same after a restart; a part of file names, so only
            letters, digits, `.`, `-` and `_`.
        overrides: changes to the config, JSON values by dotted key.
    """

    name: str
    overrides: Mapping[str, Any]


class Search(Registrable, ABC):
    """A search for the best settings of each config, variant and fraction (a cell) of a study.

    Each trial is trained with the first seed of the study, or the first few; the one with the best
    validation score is then trained with the other seeds too. A search is pickled, since jobs get a
    copy.

    Attributes:
        num_seeds: the number of runs of a trial.
    """

    num_seeds: int

    def post_init(self, num_seeds: Count = 1) -> None:
        """Set the number of runs of a trial.

        Args:
            num_seeds: the number of runs of a trial, with the first seeds of the study. Its score
                is their mean.
        """
        self.num_seeds = num_seeds

    @property
    @abstractmethod
    def num_trials(self) -> int:
        """The number of trials of a cell when the search is over."""

    @abstractmethod
    def trials(
        self, scores: Mapping[str, float | None], *, folder: Path, num_open: int
    ) -> Sequence[Trial]:
        """Return all trials so far, earlier ones unchanged, with new ones if any are wanted.

        Called under a lock of the cell at the start and after each finished trial, in one process
        or in several, and after restarts. The result follows from the arguments and from what the
        search keeps in `folder`, never from earlier calls. The search is over when every trial that
        it returns has a score.

        Args:
            scores: the scores of finished trials by name, the larger the better; None for a trial
                that failed or was pruned.
            folder: of this search's own files for this cell; it need not exist.
            num_open: how many trials without a score can be trained at the same time, with those
                that other processes train. A search that learns nothing from scores ignores it and
                returns all of its trials.
        """

    @abstractmethod
    def examples(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield overrides to check against each config before anything runs.

        A config that accepts them accepts all trials. Each has its path inside the search, such as
        `space.model.dropout`.
        """

    def callback(self, trial: str, *, folder: Path) -> Callback | None:
        """Return a callback for the training of a trial; its `scores` may raise PrunedError.

        Args:
            trial: its name.
            folder: as of `trials`.
        """
        return None
