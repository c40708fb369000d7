"""What a score is: a function of sums over examples."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

Table: TypeAlias = Mapping[str, Mapping[str, int]]
"""Counts by row and column."""


class Metric(ABC):
    """Counts what one example adds, and makes scores of the sums.

    Sums can be added over batches and over processes in any order, so that a score over
    several of them is exact.
    """

    @abstractmethod
    def count(self, prediction: Any, gold: Any) -> Mapping[str, float]:
        """Return what one example adds to the sums."""

    @abstractmethod
    def score(self, sums: Mapping[str, float]) -> dict[str, float]:
        """Return the scores by name; with nothing counted they are 0."""

    def table(self, sums: Mapping[str, float]) -> Table:
        """Return counts by row and column that say more than the scores; none unless told."""
        return {}


def is_of_one_type(name: str, names: Iterable[str]) -> bool:
    """Tell whether a score is that of one type of label, as `f1-measure-PER` is.

    Args:
        name: of the score.
        names: of scores; one over all types, such as `f1-measure-overall`, tells of the others.
    """
    families = [held.removesuffix("overall") for held in names if held.endswith("-overall")]
    return name.startswith(tuple(families)) and not name.endswith("-overall")
