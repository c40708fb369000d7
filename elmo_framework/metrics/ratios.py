"""Ratios of counts: precision, recall and their harmonic mean; perplexity."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Set
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


def gold_counts(labels: Iterable[str]) -> Counter[str]:
    """Return sums as those of `label_counts`, of data with one item of each label."""
    return label_counts(set(), {(label,) for label in labels})


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
    counted = {label: each for label, each in by_label.items() if label not in not_in_overall}
    # The name "overall" is taken, so that a label of this name has no scores.
    by_label.pop("overall", None)
    return _by_name({"overall": _scores(_total(counted))} | _by_support(by_label))


def scores_and_averages(sums: Mapping[str, float]) -> dict[str, float]:
    """Return `f1-measure-AVERAGE` of `AVERAGES`, and the scores of labels as `label_scores`."""
    averages = average_scores(sums)
    scores = _by_name(_by_support(counts_by_label(sums)))
    return averages | {name: value for name, value in scores.items() if name not in averages}


AVERAGES = ("micro", "macro", "weighted")
"""Averages over labels: of the sums, the plain mean, and the mean weighted by gold counts."""


def average_scores(sums: Mapping[str, float]) -> dict[str, float]:
    """Return `f1-measure-AVERAGE` of `AVERAGES`.

    Args:
        sums: those of `label_counts`; others are ignored. Labels that occur neither in the
            predictions nor in the gold data do not count.
    """
    averages = _averages(counts_by_label(sums))
    return {f"f1-measure-{name}": scores["f1-measure"] for name, scores in averages.items()}


def label_table(sums: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Return the scores of each label and their averages, with the gold count as `support`.

    Args:
        sums: those of `label_counts`; others are ignored.
    """
    by_label = counts_by_label(sums)
    total = int(_total(by_label)["gold"])
    rows = {
        label: {**scores, "support": int(by_label[label]["gold"])}
        for label, scores in _by_support(by_label).items()
    }
    averages = _averages(by_label) if rows else {}
    return rows | {name: {**scores, "support": total} for name, scores in averages.items()}


def _by_name(scores: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    return {f"{name}-{label}": value for label in scores for name, value in scores[label].items()}


def _by_support(by_label: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    order = sorted(by_label.items(), key=lambda pair: (-np.sum(pair[1]["gold"]), pair[0]))
    return {label: _scores(counts) for label, counts in order}


def _total(by_label: Mapping[str, Mapping[str, float]]) -> Mapping[str, float]:
    total: dict[str, float] = defaultdict(float)
    for counts in by_label.values():
        for kind, value in counts.items():
            total[kind] += value
    return total


def _averages(by_label: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    scores = [_scores(counts) for counts in by_label.values()]
    weights = {
        "macro": [1.0 * (each["gold"] + each["predicted"] > 0) for each in by_label.values()],
        "weighted": [each["gold"] for each in by_label.values()],
    }
    micro = _scores(_total(by_label))
    return {"micro": micro} | {
        name: {
            key: ratio(
                sum((w * s[key] for w, s in zip(weight, scores, strict=True)), 0.0), sum(weight)
            )
            for key in micro
        }
        for name, weight in weights.items()
    }


def _scores(counted: Mapping[str, float]) -> dict[str, float]:
    # In percent, as in the official scripts: the last digit may depend on the order of rounding.
    precision = ratio(100 * counted["correct"], counted["predicted"])
    recall = ratio(100 * counted["correct"], counted["gold"])
    f1 = harmonic_mean(precision, recall)
    return {"precision": precision / 100, "recall": recall / 100, "f1-measure": f1 / 100}
