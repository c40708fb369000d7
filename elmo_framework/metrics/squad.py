"""Exact match and F1 of answers, as in the official scorers of SQuAD 1.1 and 2.0."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

from elmo_framework.metrics.metric import Metric
from elmo_framework.metrics.ratios import harmonic_mean, ratio
from elmo_framework.metrics.thresholds import best_threshold, threshold_index

_ARTICLES = re.compile(r"\b(a|an|the)\b")
# Only ASCII: the official scorer keeps other dashes and quotation marks of Unicode.
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)
_KINDS = ("HasAns", "NoAns")
_SCORES = ("exact", "f1")


@dataclass(frozen=True, slots=True)
class Answer:
    """A predicted answer.

    Attributes:
        text: of the answer; empty if the question is predicted to have none.
        start: its first character in the passage; 0 if there is no answer.
        end: the character after its last; 0 if there is no answer.
        no_answer_probability: that the question has no answer; None if the model has no such
            option.
        best_span: the text of the best answer, also if `text` is empty; None without that option.
        probability: of the best answer, among all pairs of a first and a last word and no answer;
            None if unknown.
    """

    text: str
    start: int
    end: int
    no_answer_probability: float | None = None
    best_span: str | None = None
    probability: float | None = field(default=None, compare=False)

    @property
    def is_no_answer(self) -> bool:
        """Whether the question is predicted to have no answer."""
        return self.no_answer_probability is not None and not self.text


@final
@Metric.register("squad")
class SquadScores(Metric):
    """Exact match (`em`) and word overlap (`f1`), averaged over all questions, from 0 to 1.

    Answers are compared in lower case, without punctuation, articles and repeated spaces. With
    n common words, each counted as often as it occurs in both:

        precision = n / predicted,  recall = n / gold,  f1 = 2 * p * r / (p + r)

    The best of several gold answers counts, for each score separately. The official scorer
    prints the same numbers times 100.

    Answers with a no-answer probability are scored as by version 2.0. An empty answer is right for
    a question without an answer, and there are these scores too: `HasAns_exact` and `HasAns_f1` of
    the questions with an answer; `NoAns_exact` and `NoAns_f1` of those without; `best_exact` and
    `best_f1`, the best over all thresholds above which the no-answer probability means that there
    is no answer, with these thresholds as `best_exact_thresh` and `best_f1_thresh`.
    """

    def count(self, prediction: Answer, gold: Sequence[str]) -> Mapping[str, float]:
        """Count one question.

        Args:
            prediction: the answer.
            gold: the gold answers; of version 1.1 at least one.
        """
        if prediction.no_answer_probability is not None:
            return _count_with_no_answer(prediction, prediction.no_answer_probability, gold)
        predicted = normalized(prediction.text)
        answers = [normalized(answer) for answer in gold]
        return {
            "em": float(predicted in answers),
            "f1": max((_overlap(predicted.split(), each.split()) for each in answers), default=0.0),
            "total": 1.0,
        }

    def score(self, sums: Mapping[str, float]) -> dict[str, float]:
        total = sums.get("total", 0.0)
        scores = {name: ratio(sums.get(name, 0.0), total) for name in ("em", "f1")}
        if any(f"gold/{kind}" in sums for kind in _KINDS):
            scores |= _no_answer_scores(sums)
        return scores


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


def _count_with_no_answer(
    prediction: Answer, probability: float, gold: Sequence[str]
) -> dict[str, float]:
    """Count one question as version 2.0 does, which may have no answer.

    `exact_gain/K` and `f1_gain/K` are what the score gains, compared with no answer to any
    question, if this one is answered: at all thresholds from the one with index K.
    """
    answers = [answer for answer in map(normalized, gold) if answer] or [""]
    kind = "HasAns" if gold else "NoAns"
    exact, f1 = _matches(prediction.text, answers)
    counts = {"em": exact, "f1": f1, "total": 1.0, f"gold/{kind}": 1.0}
    counts |= {f"{kind}_exact": exact, f"{kind}_f1": f1}
    gains = _matches(prediction.best_span or "", answers) if gold else (-1.0, -1.0)
    index = threshold_index(probability)
    counts |= {
        f"{name}_gain/{index}": gain for name, gain in zip(_SCORES, gains, strict=True) if gain
    }
    return counts


def _matches(answer: str, gold: Sequence[str]) -> tuple[float, float]:
    """Return exact match and F1 of version 2.0, where two empty answers have F1 1."""
    predicted = normalized(answer)
    words = predicted.split()
    overlaps = (
        _overlap(words, each.split()) if words and each else float(predicted == each)
        for each in gold
    )
    return float(predicted in gold), max(overlaps)


def _no_answer_scores(sums: Mapping[str, float]) -> dict[str, float]:
    scores = {
        f"{kind}_{name}": ratio(sums.get(f"{kind}_{name}", 0.0), sums.get(f"gold/{kind}", 0.0))
        for kind in _KINDS
        for name in _SCORES
    }
    total: Any = sums.get("total", 0.0)
    for name in _SCORES:
        prefix = f"{name}_gain/"
        gains = {int(k.removeprefix(prefix)): v for k, v in sums.items() if k.startswith(prefix)}
        best, threshold = best_threshold(sums.get("gold/NoAns", 0.0), gains)
        scores |= {f"best_{name}": ratio(best, total), f"best_{name}_thresh": threshold}
    return scores
