"""Scores of word sense disambiguation, as of the unified evaluation framework."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, final

from elmo_framework.metrics.metric import Metric
from elmo_framework.metrics.ratios import label_scores


class GoldSense(NamedTuple):
    """The part of speech of a word, and its senses, each of which is right."""

    pos: str
    senses: Collection[str]


@final
@Metric.register("word_senses")
class WordSenseScores(Metric):
    """Precision, recall and F1 over words, overall and by part of speech, from 0 to 1.

    A word counts as right if its predicted sense is one of its gold senses, as in the scorer of
    Raganato et al. (2017). Words without a predicted sense lower the recall only.
    """

    def count(
        self, prediction: Sequence[str | None], gold: Sequence[GoldSense]
    ) -> Mapping[str, float]:
        """Count the words of one sentence."""
        counts: Counter[str] = Counter()
        for predicted, (pos, senses) in zip(prediction, gold, strict=True):
            counts[f"gold/{pos}"] += 1
            counts[f"predicted/{pos}"] += predicted is not None
            counts[f"correct/{pos}"] += predicted in senses
        return dict(counts)

    def score(self, sums: Mapping[str, float]) -> dict[str, float]:
        return label_scores(sums)
