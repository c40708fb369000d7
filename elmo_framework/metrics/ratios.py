"""Ratios of counts: precision, recall and their harmonic mean; perplexity."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Set
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

NumberT = TypeVar("NumberT", float, NDArray[np.float64])


def ratio(part: NumberT, whole: NumberT) -> NumberT:
    """Return `part / whole`; 0 if `whole` is 0. Of arrays, elementwise."""
    if isinstance(whole, np.ndarray):
        return np.divide(part, whole, out=np.zeros_like(whole), where=whole != 0)
    return part / whole if whole else 0.0


def harmonic_mean(precision: NumberT, recall: NumberT) -> NumberT:
    """Return F1; 0 if both are 0. Of arrays, elementwise."""
    return ratio(2 * precision * recall, precision + recall)


def perplexity(loss: float) -> float:
    """Return the perplexity for a mean loss in nats; infinity if it overflows."""
    try:
        return math.exp(loss)
    except OverflowError:
        return math.inf


def label_counts(predicted: Set[tuple[Any, ...]], gold: Set[tuple[Any, ...]]) -> Counter[str]:
    """Count labeled items under `correct/LABEL`, `predicted/LABEL` and `gold/LABEL`.

    Args:
        predicted: the predicted items; the last element of each is its label.
        gold: the gold items, in the same form.
    """
    counted = {"correct": predicted & gold, "predicted": predicted, "gold": gold}
    return Counter(f"{kind}/{label}" for kind, items in counted.items() for *_, label in items)


def counts_by_label(sums: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Return what `label_counts` counted by label, and then by `correct`, `predicted` and `gold`.

    Args:
        sums: those of `label_counts`; others are ignored.
    """
    by_label: dict[str, dict[str, float]] = {}
    for name, value in sums.items():
        kind, _, label = name.partition("/")
        if label:
            by_label.setdefault(label, defaultdict(float))[kind] += value
    return by_label


def label_scores(
    sums: Mapping[str, float], *, not_in_overall: Set[str] = frozenset()
) -> dict[str, float]:
    """Return `precision-LABEL`, `recall-LABEL` and `f1-measure-LABEL`, with `overall` for all.

    `overall` comes first; labels follow by how often they occur in the gold data.

    Args:
        sums: those of `label_counts`; others are ignored.
        not_in_overall: labels that do not count for `overall`.
    """
    by_label = counts_by_label(sums)
    overall: dict[str, float] = defaultdict(float)
    for label, counts in by_label.items():
        for kind, value in counts.items() if label not in not_in_overall else ():
            overall[kind] += value
    # The name "overall" is taken, so that a label of this name has no scores.
    by_label.pop("overall", None)
    by_support = sorted(by_label.items(), key=lambda pair: (-np.sum(pair[1]["gold"]), pair[0]))
    return {
        f"{name}-{label}": value
        for label, counts in (("overall", overall), *by_support)
        for name, value in _scores(counts).items()
    }


def _scores(counted: Mapping[str, float]) -> dict[str, float]:
    # In percent, as in the official scripts: the last digit may depend on the order of rounding.
    precision = ratio(100 * counted["correct"], counted["predicted"])
    recall = ratio(100 * counted["correct"], counted["gold"])
    f1 = harmonic_mean(precision, recall)
    return {"precision": precision / 100, "recall": recall / 100, "f1-measure": f1 / 100}
