"""Confusion matrix of gold and predicted labels, and their correlation."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import final

from elmo_framework.metrics.accuracy import Labels, label_pairs
from elmo_framework.metrics.metric import Metric, Table
from elmo_framework.metrics.ratios import counts_by_label, label_counts, ratio


@final
@Metric.register("confusion")
class Confusion(Metric):
    """Counts each pair of gold and predicted label; a table without scores."""

    def count(self, prediction: Labels, gold: str | Sequence[str]) -> Mapping[str, float]:
        pairs = label_pairs(prediction, gold)
        return Counter(json.dumps([label, predicted]) for predicted, label in pairs)

    def score(self, sums: Mapping[str, float]) -> dict[str, float]:
        return {}

    def table(self, sums: Mapping[str, float]) -> Table:
        """Return the counts of predicted labels (columns) for each gold label (rows)."""
        pairs = {tuple(json.loads(pair)): number for pair, number in sums.items()}
        labels = sorted({label for pair in pairs for label in pair})
        return {
            gold: {label: int(pairs.get((gold, label), 0)) for label in labels} for gold in labels
        }


@final
@Metric.register("mcc")
class MatthewsCorrelation(Metric):
    """The correlation of predicted and gold labels, from -1 to 1; `mcc`.

    With n labels, c of them correct, and t_k gold and p_k predicted labels of class k:

        mcc = (c n - sum_k t_k p_k) / sqrt((n^2 - sum_k t_k^2) (n^2 - sum_k p_k^2))

    For two classes this is the coefficient of Matthews (1975), and for more the R_K of
    Gorodkin (2004). It is 0 if all predicted or all gold labels are of one class.
    """

    def count(self, prediction: Labels, gold: str | Sequence[str]) -> Mapping[str, float]:
        pairs = list(enumerate(label_pairs(prediction, gold)))
        return label_counts(
            {(position, predicted) for position, (predicted, _) in pairs},
            {(position, label) for position, (_, label) in pairs},
        )

    def score(self, sums: Mapping[str, float]) -> dict[str, float]:
        by_label = counts_by_label(sums).values()
        total = sum(each["gold"] for each in by_label)
        expected = sum(each["gold"] * each["predicted"] for each in by_label)
        covariance = total * sum(each["correct"] for each in by_label) - expected
        variances = [
            total**2 - sum(each[side] ** 2 for each in by_label) for side in ("gold", "predicted")
        ]
        return {"mcc": ratio(covariance, math.prod(variances) ** 0.5)}
