"""Labeled precision, recall and F1 of constituents by the rules of EVALB."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import final

from elmo_framework.metrics import Metric, harmonic_mean, ratio

from .trees import Constituent, Tree

_NOT_COUNTED = frozenset(("TOP", "S1", "-NONE-", ",", ":", "``", "''", "."))
"""Labels, and parts of speech of words, that do not count (DELETE_LABEL of COLLINS.prm)."""

_EQUAL = {"PRT": "ADVP"}
"""Labels that are another one for EVALB (EQ_LABEL)."""


@final
@Metric.register("evalb")
class EvalbScores(Metric):
    """The scores of EVALB with the parameters of Collins (1997), from 0 to 1.

    A predicted constituent is right if the gold tree has one with the same label and words; each
    gold constituent counts once. Punctuation is deleted from both trees before, by the gold parts
    of speech, and constituents without a word left do not count; nor does the root TOP. ADVP and
    PRT are one label. `evalb_exact_match` is the fraction of sentences without an error.
    """

    def count(self, prediction: Sequence[Constituent], gold: Tree) -> Mapping[str, float]:
        predicted, right = (
            _brackets(constituents, gold.tags) for constituents in (prediction, gold.constituents)
        )
        return {
            "correct": (predicted & right).total(),
            "predicted": predicted.total(),
            "gold": right.total(),
            "exact": float(predicted == right),
            "sentences": 1.0,
        }

    def score(self, sums: Mapping[str, float]) -> dict[str, float]:
        names = ("correct", "predicted", "gold", "exact", "sentences")
        correct, predicted, gold, exact, sentences = (sums.get(name, 0.0) for name in names)
        precision, recall = ratio(correct, predicted), ratio(correct, gold)
        return {
            "evalb_precision": precision,
            "evalb_recall": recall,
            "evalb_f1_measure": harmonic_mean(precision, recall),
            "evalb_exact_match": ratio(exact, sentences),
        }


def _brackets(constituents: Sequence[Constituent], tags: Sequence[str]) -> Counter[Constituent]:
    """Return the constituents that count, over the words that are left."""
    num_left = [0, *accumulate(int(tag not in _NOT_COUNTED) for tag in tags)]
    counted = Counter[Constituent]()
    for start, end, label in constituents:
        # Without parts of speech all words count.
        first, last = (num_left[start], num_left[end]) if tags else (start, end)
        if first < last and label not in _NOT_COUNTED:
            counted[Constituent(first, last, _EQUAL.get(label, label))] += 1
    return counted
