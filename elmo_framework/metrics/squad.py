"""How many questions are answered, as the official scorer of SQuAD 1.1 counts."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

from elmo_framework.metrics.metric import Metric
from elmo_framework.metrics.ratios import harmonic_mean, ratio

_ARTICLES = re.compile(r"\b(a|an|the)\b")
# Of ASCII alone: the official scorer leaves a dash or a quotation mark of Unicode in place.
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)


@final
class SquadScores(Metric):
    """Exact matches and the overlap of words, over all questions; both from 0 to 1.

    Answers are compared in lower case, without punctuation, articles and repeated spaces. With
    n words that both have, a word counting as often as it stands in both:

        precision = n / predicted,  recall = n / gold,  f1 = 2 * p * r / (p + r)

    Of several gold answers the best counts, for each score by itself. The official scorer
    prints the same numbers times 100.

    Args:
        read_answer: what finds the text of a prediction.
    """

    def __init__(self, read_answer: Callable[[Any], str] = str) -> None:
        self._read_answer = read_answer

    def count(self, prediction: Any, gold: Sequence[str]) -> Mapping[str, float]:
        """Count one question.

        Args:
            prediction: holds the predicted answer.
            gold: all its answers, at least one.
        """
        predicted = normalized(self._read_answer(prediction))
        answers = [normalized(answer) for answer in gold]
        return {
            "em": float(predicted in answers),
            "f1": max(_overlap(predicted.split(), answer.split()) for answer in answers),
            "total": 1.0,
        }

    def score(self, sums: Mapping[str, float]) -> dict[str, float]:
        """Return `em` and `f1`."""
        total = sums.get("total", 0.0)
        return {name: ratio(sums.get(name, 0.0), total) for name in ("em", "f1")}


def normalized(answer: str) -> str:
    """Return an answer in lower case, without punctuation, articles and repeated spaces.

    The order counts, and is the official one: without its hyphen `a-bomb` holds no article.
    """
    bare = answer.lower().translate(_WITHOUT_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", bare).split())


def _overlap(predicted: Sequence[str], gold: Sequence[str]) -> float:
    """Return F1; as in the official scorer of version 1.1, 0 even when neither has a word."""
    num_same = (Counter(predicted) & Counter(gold)).total()
    if not num_same:
        return 0.0
    return harmonic_mean(num_same / len(predicted), num_same / len(gold))
