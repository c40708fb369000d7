"""How many texts get the right class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

from elmo_framework.metrics.accuracy import Accuracy
from elmo_framework.metrics.metric import Metric

from .example import Classification


@final
class LabelAccuracy(Metric):
    """The share of texts whose most probable class is the right one; `accuracy`."""

    def __init__(self) -> None:
        self._accuracy = Accuracy()

    def count(self, prediction: Classification, gold: str) -> Mapping[str, float]:
        """Count one text."""
        return self._accuracy.count(prediction.label, gold)

    def score(self, sums: Mapping[str, float]) -> dict[str, float]:
        """Return `accuracy`."""
        return self._accuracy.score(sums)
