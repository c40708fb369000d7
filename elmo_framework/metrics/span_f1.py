"""F1 of labeled spans, as in the CoNLL scorer."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import final

from elmo_framework.data.tagging import conlleval_tags, spans
from elmo_framework.metrics.metric import Metric, Table
from elmo_framework.metrics.ratios import (
    average_scores,
    gold_counts,
    label_counts,
    label_scores,
    label_table,
    ratio,
)


@final
@Metric.register("span_f1")
class SpanF1(Metric):
    """Precision, recall and their harmonic mean over spans, for each label and overall.

        precision = correct / predicted,  recall = correct / gold,  f1 = 2 * p * r / (p + r)

    A span is correct if its words and its label are. The scores are called `precision-LABEL`,
    `recall-LABEL` and `f1-measure-LABEL`, with `overall` for all labels (a label
    of this name has no scores). `f1-measure-macro` is the mean of F1 over the labels, and
    `f1-measure-weighted` the mean weighted by their number of gold spans; `accuracy` is the
    fraction of words whose tag is correct. Like conlleval, which supports only IOB1 and BIO, it
    compares tags of other schemes as BIO.
    """

    def count(self, prediction: Sequence[str], gold: Sequence[str]) -> Mapping[str, float]:
        sums = label_counts(set(spans(prediction)), set(spans(gold)))
        sides = conlleval_tags(prediction, gold), conlleval_tags(gold, prediction)
        pairs = zip(*sides, strict=True)
        sums["correct_words"] = sum(predicted == tag for predicted, tag in pairs)
        sums["words"] = len(gold)
        return sums

    def score(self, sums: Mapping[str, float]) -> dict[str, float]:
        """Return the scores; labels that do not occur have none."""
        accuracy = ratio(sums.get("correct_words", 0.0), sums.get("words", 0.0))
        averages = {k: v for k, v in average_scores(sums).items() if not k.endswith("-micro")}
        return {"accuracy": accuracy, **label_scores(sums), **averages}

    def names_of_scores(self, labels: Collection[str]) -> Collection[str]:
        return self.score(gold_counts({label for *_, label in spans([*labels])}))

    def table(self, sums: Mapping[str, float]) -> Table:
        """Return the scores of each label, with the number of its gold spans."""
        return label_table(sums)
