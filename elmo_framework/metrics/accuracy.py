"""Accuracy and top-k accuracy."""

from __future__ import annotations

from collections.abc import Mapping
from heapq import nlargest
from typing import Protocol, final

from elmo_framework.metrics.metric import Metric
from elmo_framework.metrics.ratios import ratio


@final
class Accuracy(Metric):
    """The fraction of examples whose label is predicted; `accuracy`."""

    def count(self, prediction: str, gold: str) -> Mapping[str, float]:
        return {"correct": float(prediction == gold), "total": 1.0}

    def score(self, sums: Mapping[str, float]) -> dict[str, float]:
        """Return `accuracy`."""
        return {"accuracy": _accuracy(sums)}


class HasProbabilities(Protocol):
    """A prediction with the probability of each label."""

    @property
    def probabilities(self) -> Mapping[str, float]:
        """The probability of each label."""


@final
class TopAccuracy(Metric):
    """The fraction of examples whose label is among the most probable; `accuracy3` for three.

    Args:
        num_labels: number of most probable labels to consider.
    """

    def __init__(self, num_labels: int) -> None:
        self._num_labels = num_labels

    def count(self, prediction: HasProbabilities, gold: str) -> Mapping[str, float]:
        probabilities = prediction.probabilities
        best = nlargest(self._num_labels, probabilities, key=probabilities.__getitem__)
        return {"correct": float(gold in best), "total": 1.0}

    def score(self, sums: Mapping[str, float]) -> dict[str, float]:
        """Return `accuracy3`, with the number of labels in the name."""
        return {f"accuracy{self._num_labels}": _accuracy(sums)}


def _accuracy(sums: Mapping[str, float]) -> float:
    return ratio(sums.get("correct", 0.0), sums.get("total", 0.0))
