"""Scores of word sense disambiguation, and of the senses of nearest neighbors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, TypeAlias, final

from elmo_framework.metrics.metric import Metric
from elmo_framework.metrics.ratios import label_scores, ratio


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


Neighborhood: TypeAlias = Mapping[int, float]
"""The weights of the nearest occurrences of a word, by their index; they add up to 1."""


@final
@Metric.register("neighbor_purity")
class NeighborPurity(Metric):
    """The ratio of nearest occurrences with the same sense, averaged over words, from 0 to 1.

    `purity` of a word is the mean over its occurrences. `prior` is the same for neighbors that are
    drawn at random.
    """

    def count(self, prediction: Sequence[Neighborhood], gold: Sequence[str]) -> Mapping[str, float]:
        """Count one word, with the sense of each occurrence."""
        frequencies, num_others = Counter(gold), max(1, len(gold) - 1)
        purities = [
            sum(weight for index, weight in near.items() if gold[index] == sense)
            for near, sense in zip(prediction, gold, strict=True)
        ]
        priors = [(frequencies[sense] - 1) / num_others for sense in gold]
        return {
            "purity": sum(purities) / len(gold),
            "prior": sum(priors) / len(gold),
            "words": 1.0,
        }

    def score(self, sums: Mapping[str, float]) -> dict[str, float]:
        words = sums.get("words", 0.0)
        return {name: ratio(sums.get(name, 0.0), words) for name in ("purity", "prior")}
