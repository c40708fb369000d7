"""How many labels are right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

from elmo_framework.metrics.metric import Metric


@final
class Accuracy(Metric):
    """The share of examples whose label is predicted; `accuracy`."""

    def count(self, prediction: str, gold: str) -> Mapping[str, float]:
        """Count one example."""
        return {"correct": float(prediction == gold), "total": 1.0}

    def score(self, sums: Mapping[str, float]) -> dict[str, float]:
        """Return `accuracy`."""
        return {"accuracy": sums.get("correct", 0.0) / max(sums.get("total", 0.0), 1.0)}
