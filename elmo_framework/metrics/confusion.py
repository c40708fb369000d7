"""Confusion matrix of gold and predicted labels."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Protocol, final

from elmo_framework.metrics.metric import Metric, Table
from elmo_framework.metrics.ratios import ratio


class HasLabel(Protocol):
    """A prediction of one label."""

    @property
    def label(self) -> str:
        """The label."""


@final
class Confusion(Metric):
    """Counts each pair of gold and predicted label; `accuracy` is the fraction of equal pairs."""

    def count(self, prediction: HasLabel, gold: str) -> Mapping[str, float]:
        return {json.dumps([gold, prediction.label]): 1.0}

    def score(self, sums: Mapping[str, float]) -> dict[str, float]:
        """Return `accuracy`."""
        pairs = _pairs(sums)
        correct = sum(number for (gold, label), number in pairs.items() if gold == label)
        return {"accuracy": ratio(correct, sum(pairs.values()))}

    def table(self, sums: Mapping[str, float]) -> Table:
        """Return the counts of predicted labels (columns) for each gold label (rows)."""
        pairs = _pairs(sums)
        labels = sorted({label for pair in pairs for label in pair})
        return {
            gold: {label: int(pairs.get((gold, label), 0)) for label in labels} for gold in labels
        }


def _pairs(sums: Mapping[str, float]) -> dict[tuple[str, str], float]:
    return {tuple(json.loads(pair)): number for pair, number in sums.items()}
