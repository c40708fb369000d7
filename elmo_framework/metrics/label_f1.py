"""Precision, recall and F1 of labels."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import final

from elmo_framework.data.labels import LabelSet
from elmo_framework.metrics.accuracy import Labels, label_pairs
from elmo_framework.metrics.metric import Metric, Table
from elmo_framework.metrics.ratios import (
    gold_counts,
    label_counts,
    label_table,
    ratio,
    scores_and_averages,
)


@final
@Metric.register("label_f1")
class LabelF1(Metric):
    """Precision, recall and their harmonic mean for each label, and averages of them.

        precision = correct / predicted,  recall = correct / gold,  f1 = 2 * p * r / (p + r)

    The scores are called `precision-LABEL`, `recall-LABEL` and `f1-measure-LABEL`. Averages are
    `f1-measure-micro` (of the sums over all labels), `f1-measure-macro` (the mean over the labels
    that occur) and `f1-measure-weighted` (by their number of gold examples). With one label for
    each example, the first is the accuracy. The table has all of them, with the number of gold
    examples as `support`. A tagger predicts a label for each word.
    """

    def count(
        self, prediction: Labels | LabelSet, gold: str | Sequence[str]
    ) -> Mapping[str, float]:
        if isinstance(prediction, LabelSet):
            predicted, right = (
                {(0, label) for label in each} for each in (prediction.labels, gold)
            )
            return label_counts(predicted, right)
        pairs = list(enumerate(label_pairs(prediction, gold)))
        return label_counts(
            {(position, predicted) for position, (predicted, _) in pairs},
            {(position, label) for position, (_, label) in pairs},
        )

    def score(self, sums: Mapping[str, float]) -> dict[str, float]:
        return scores_and_averages(sums)

    def names_of_scores(self, labels: Collection[str]) -> Collection[str]:
        return self.score(gold_counts(labels))

    def table(self, sums: Mapping[str, float]) -> Table:
        return label_table(sums)


@final
@Metric.register("exact_match")
class ExactMatch(Metric):
    """The fraction of examples all of whose labels are right; `exact_match`."""

    def count(self, prediction: LabelSet, gold: Sequence[str]) -> Mapping[str, float]:
        return {"correct": set(prediction.labels) == set(gold), "total": 1}

    def score(self, sums: Mapping[str, float]) -> dict[str, float]:
        return {"exact_match": ratio(sums.get("correct", 0.0), sums.get("total", 0.0))}
