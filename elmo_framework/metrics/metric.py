"""Base class of metrics, which compute scores from sums over examples."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

Table: TypeAlias = Mapping[str, Mapping[str, int]]
"""Counts by row and column."""


class Metric(ABC):
    """Computes the summands of each example, and scores from the sums.

    Sums are added over batches and processes in any order, so that a score over several of
    them is exact.
    """

    @abstractmethod
    def count(self, prediction: Any, gold: Any) -> Mapping[str, float]:
        """Return what one example adds to the sums."""

    @abstractmethod
    def score(self, sums: Mapping[str, float]) -> dict[str, float]:
        """Return the scores by name; 0 if nothing was counted."""

    def table(self, sums: Mapping[str, float]) -> Table:
        """Return counts by row and column that complement the scores; empty by default."""
        return {}


def is_of_one_type(name: str, names: Iterable[str]) -> bool:
    """Return whether a score is of one type of label, such as `f1-measure-PER`.

    Args:
        name: the name of the score.
        names: all names of scores; `f1-measure-overall` implies scores of types `f1-measure-*`.
    """
    families = [each.removesuffix("overall") for each in names if each.endswith("-overall")]
    return name.startswith(tuple(families)) and not name.endswith("-overall")
