"""Accuracy and top-k accuracy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from heapq import nlargest
from typing import TypeAlias, final

from elmo_framework.config.types import Count
from elmo_framework.data.labels import Classification
from elmo_framework.metrics.metric import Metric
from elmo_framework.metrics.ratios import ratio

Labels: TypeAlias = Classification | str | Sequence[str]
"""A prediction of one label, or of a tag for each word."""


def label_pairs(prediction: Labels, gold: str | Sequence[str]) -> Iterable[tuple[str, str]]:
    """Return predicted and gold labels: one pair per example, or one per word of a sentence."""
    predicted = prediction.label if isinstance(prediction, Classification) else prediction
    if isinstance(predicted, str) and isinstance(gold, str):
        return [(predicted, gold)]
    return zip(predicted, gold, strict=True)


@final
@Metric.register("categorical_accuracy")
class Accuracy(Metric):
    """The fraction of correct labels; `accuracy`. A tagger predicts a label for each word."""

    def count(self, prediction: Labels, gold: str | Sequence[str]) -> Mapping[str, float]:
        pairs = list(label_pairs(prediction, gold))
        correct = sum(predicted == label for predicted, label in pairs)
        return {"correct": correct, "total": len(pairs)}

    def score(self, sums: Mapping[str, float]) -> dict[str, float]:
        return {"accuracy": ratio(sums.get("correct", 0.0), sums.get("total", 0.0))}


@final
@Metric.register("top_accuracy")
class TopAccuracy(Metric):
    """The fraction of examples whose label is among the most probable; `accuracy3` for three.

    Args:
        top_k: number of most probable labels to consider.
    """

    def __init__(self, top_k: Count) -> None:
        self._top_k = top_k

    def count(self, prediction: Classification, gold: str) -> Mapping[str, float]:
        probabilities = prediction.probabilities
        best = nlargest(self._top_k, probabilities, key=probabilities.__getitem__)
        return {"correct": gold in best, "total": 1}

    def score(self, sums: Mapping[str, float]) -> dict[str, float]:
        accuracy = ratio(sums.get("correct", 0.0), sums.get("total", 0.0))
        return {f"accuracy{self._top_k}": accuracy}
