"""Shares of what is counted: precision, recall and their harmonic mean."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Set
from typing import Any


def ratio(part: float, whole: float) -> float:
    """Return a part of a whole; 0 of nothing."""
    return part / whole if whole else 0.0


def harmonic_mean(precision: float, recall: float) -> float:
    """Return F1; 0 where both are."""
    return ratio(2 * precision * recall, precision + recall)


def label_counts(predicted: Set[tuple[Any, ...]], gold: Set[tuple[Any, ...]]) -> Counter[str]:
    """Count what is labelled, under `correct/LABEL`, `predicted/LABEL` and `gold/LABEL`.

    Args:
        predicted: what was found; the label of each stands last in it.
        gold: what is there, in the same form.
    """
    counted = {"correct": predicted & gold, "predicted": predicted, "gold": gold}
    return Counter(f"{kind}/{label}" for kind, found in counted.items() for *_, label in found)


def label_scores(
    sums: Mapping[str, float], *, not_in_overall: Set[str] = frozenset()
) -> dict[str, float]:
    """Return `precision-LABEL`, `recall-LABEL` and `f1-measure-LABEL`, with `overall` for all.

    `overall` comes first; labels follow by how often they occur in the gold data.

    Args:
        sums: those of `label_counts`; others are passed over.
        not_in_overall: labels that do not count for `overall`.
    """
    by_label: dict[str, dict[str, float]] = {}
    overall: dict[str, float] = defaultdict(float)
    for name, value in sums.items():
        kind, _, label = name.partition("/")
        if label:
            by_label.setdefault(label, defaultdict(float))[kind] += value
        if label and label not in not_in_overall:
            overall[kind] += value
    # Of a label that is called "overall" nothing is shown.
    by_label.pop("overall", None)
    by_support = sorted(by_label.items(), key=lambda pair: (-pair[1]["gold"], pair[0]))
    return {
        f"{name}-{label}": value
        for label, counted in (("overall", overall), *by_support)
        for name, value in _scores(counted).items()
    }


def _scores(counted: Mapping[str, float]) -> dict[str, float]:
    # In per cent, as in the official scripts, whose last digit may hang on how a number was
    # rounded before.
    precision = ratio(100 * counted["correct"], counted["predicted"])
    recall = ratio(100 * counted["correct"], counted["gold"])
    f1 = harmonic_mean(precision, recall)
    return {"precision": precision / 100, "recall": recall / 100, "f1-measure": f1 / 100}
