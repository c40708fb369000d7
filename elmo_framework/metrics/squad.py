"""Exact match and F1 of answers, as in the official scorer of SQuAD 1.1."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

from elmo_framework.metrics.metric import Metric
from elmo_framework.metrics.ratios import harmonic_mean, ratio

_ARTICLES = re.compile(r"\b(a|an|the)\b")
# Only ASCII: the official scorer keeps other dashes and quotation marks of Unicode.
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)


@dataclass(frozen=True, slots=True)
class Answer:
    """A predicted answer: its text, and its first and end character in the passage."""

    text: str
    start: int
    end: int


@final
@Metric.register("squad")
class SquadScores(Metric):
    """Exact match (`em`) and word overlap (`f1`), averaged over all questions, from 0 to 1.

    Answers are compared in lower case, without punctuation, articles and repeated spaces. With
    n common words, each counted as often as it occurs in both:

        precision = n / predicted,  recall = n / gold,  f1 = 2 * p * r / (p + r)

    The best of several gold answers counts, for each score separately. The official scorer
    prints the same numbers times 100.
    """

    def count(self, prediction: Answer, gold: Sequence[str]) -> Mapping[str, float]:
        """Count one question, with at least one gold answer."""
        predicted = normalized(prediction.text)
        answers = [normalized(answer) for answer in gold]
        return {
            "em": float(predicted in answers),
            "f1": max(_overlap(predicted.split(), answer.split()) for answer in answers),
            "total": 1.0,
        }

    def score(self, sums: Mapping[str, float]) -> dict[str, float]:
        total = sums.get("total", 0.0)
        return {name: ratio(sums.get(name, 0.0), total) for name in ("em", "f1")}


def normalized(answer: str) -> str:
    """Return an answer in lower case, without punctuation, articles and repeated spaces.

    The order of steps matters and is the official one: `a-bomb` becomes `abomb`, without article.
    """
    bare = answer.lower().translate(_WITHOUT_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", bare).split())


def _overlap(predicted: Sequence[str], gold: Sequence[str]) -> float:
    """Return F1; 0 even if neither has a word, as in the official scorer of version 1.1."""
    num_same = (Counter(predicted) & Counter(gold)).total()
    if not num_same:
        return 0.0
    return harmonic_mean(num_same / len(predicted), num_same / len(gold))
