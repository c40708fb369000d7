"""How well clusters of mentions agree with the right ones, as the CoNLL-2012 scorer counts it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from typing import NamedTuple, TypeAlias, final

import numpy as np
from scipy.optimize import linear_sum_assignment  # type: ignore[import-untyped]

from elmo_framework.metrics.metric import Metric

Span: TypeAlias = tuple[int, int]
"""The first and the last word of a mention."""

Clusters: TypeAlias = Sequence[Collection[Span]]


class Resolution(NamedTuple):
    """What is predicted for a document.

    Attributes:
        clusters: the mentions that mean the same; no mention stands in two of them.
        spans: all that were considered as mentions.
    """

    clusters: tuple[tuple[Span, ...], ...]
    spans: tuple[Span, ...]


class _Agreement(NamedTuple):
    """What a metric gives for the right clusters, found again by the predicted ones."""

    found: float
    total: float


@final
class ConllCoref(Metric):
    """The scores of the CoNLL-2012 shared task: MUC, B-cubed, CEAF and their mean.

    With the right clusters K and the predicted ones R, recall is

        MUC      sum_K (|K| - parts(K, R)) / sum_K (|K| - 1)
        B-cubed  sum_K sum_R |K & R|^2 / |K|  /  sum_K |K|
        CEAF     max over one-to-one maps m of sum_K 2 |K & m(K)| / (|K| + |m(K)|)  /  number of K

    where parts(K, R) is how many pieces R cuts K into, a mention that is in no R being a piece of
    its own. Precision is the same with K and R exchanged. All parts of these fractions are summed
    over the documents before they are divided, as version 8 of the official scorer does
    (Pradhan et al. 2014). Nothing is done to mentions that only one side has, nor to clusters of
    one mention, on either side. A right mention that is repeated counts where it stands first; a
    wrong one counts in the size of each cluster it is in.

    The scores are called `muc_f1`, `b_cubed_f1`, `ceaf_f1` and `coref_f1` for their mean, each
    with `_precision` and `_recall` likewise; `mention_identification_f1` is that of the mentions
    themselves, whatever cluster they are in.
    """

    def count(self, prediction: Resolution, gold: Clusters) -> Mapping[str, float]:
        """Count the clusters of one document."""
        right = {mention for cluster in gold for mention in cluster}
        key, response = (_counted(each, right) for each in (gold, prediction.clusters))
        sums = {}
        for name, agreement in _AGREEMENTS.items():
            for side, found in (
                ("recall", agreement(key, response)),
                ("precision", agreement(response, key)),
            ):
                sums[f"{name}_{side}/found"] = found.found
                sums[f"{name}_{side}/total"] = found.total
        return sums

    def score(self, sums: Mapping[str, float]) -> dict[str, float]:
        """Return the scores."""
        scores: dict[str, float] = {}
        for name in _AGREEMENTS:
            for side in ("precision", "recall"):
                scores[f"{name}_{side}"] = _share(
                    sums.get(f"{name}_{side}/found", 0.0), sums.get(f"{name}_{side}/total", 0.0)
                )
            precision, recall = scores[f"{name}_precision"], scores[f"{name}_recall"]
            scores[f"{name}_f1"] = _share(2 * precision * recall, precision + recall)
        for side in ("precision", "recall", "f1"):
            scores[f"coref_{side}"] = sum(scores[f"{name}_{side}"] for name in _AVERAGED) / 3
        return scores


@final
class MentionRecall(Metric):
    """The share of the right mentions that are among the spans considered; `mention_recall`."""

    def count(self, prediction: Resolution, gold: Clusters) -> Mapping[str, float]:
        """Count the mentions of one document."""
        mentions = {mention for cluster in gold for mention in cluster}
        found = mentions.intersection(prediction.spans)
        return {"found": float(len(found)), "total": float(len(mentions))}

    def score(self, sums: Mapping[str, float]) -> dict[str, float]:
        """Return `mention_recall`."""
        return {"mention_recall": _share(sums.get("found", 0.0), sums.get("total", 0.0))}


def _counted(clusters: Clusters, right: Set[Span]) -> list[list[Span]]:
    """Return clusters without the mentions, and without the clusters, that do not count."""
    seen: set[Span] = set()
    kept = []
    for cluster in clusters:
        own = []
        for mention in cluster:
            if mention not in seen:
                own.append(mention)
            if mention in right:
                seen.add(mention)
        if own:
            kept.append(own)
    return kept


def _owners(clusters: Iterable[Iterable[Span]]) -> dict[Span, int]:
    """Return the number of the cluster of each mention."""
    return {mention: number for number, held in enumerate(clusters) for mention in held}


def _muc(clusters: list[list[Span]], others: list[list[Span]]) -> _Agreement:
    owners = _owners(others)
    found = 0
    for cluster in clusters:
        known = [owners[mention] for mention in cluster if mention in owners]
        num_parts = len(set(known)) + len(cluster) - len(known)
        found += len(cluster) - num_parts
    return _Agreement(found, sum(map(len, clusters)) - len(clusters))


def _b_cubed(clusters: list[list[Span]], others: list[list[Span]]) -> _Agreement:
    shared = _overlaps(clusters, others)
    found = sum(size**2 / len(clusters[number]) for (number, _), size in shared.items())
    return _Agreement(found, sum(map(len, clusters)))


def _ceaf(clusters: list[list[Span]], others: list[list[Span]]) -> _Agreement:
    similarities = np.zeros((len(clusters), len(others)))
    for (number, other), size in _overlaps(clusters, others).items():
        similarities[number, other] = 2 * size / (len(clusters[number]) + len(others[other]))
    rows, columns = linear_sum_assignment(similarities, maximize=True)
    return _Agreement(float(similarities[rows, columns].sum()), len(clusters))


def _mentions(clusters: list[list[Span]], others: list[list[Span]]) -> _Agreement:
    found, sought = _owners(clusters), _owners(others)
    return _Agreement(len(found.keys() & sought.keys()), len(found))


def _overlaps(clusters: list[list[Span]], others: list[list[Span]]) -> Counter[tuple[int, int]]:
    """Count the mentions that are in both of a pair of clusters, where there are any."""
    owners = _owners(others)
    return Counter(
        (number, owners[mention])
        for number, cluster in enumerate(clusters)
        for mention in cluster
        if mention in owners
    )


_AVERAGED: Mapping[str, Callable[[list[list[Span]], list[list[Span]]], _Agreement]] = {
    "muc": _muc,
    "b_cubed": _b_cubed,
    "ceaf": _ceaf,
}
_AGREEMENTS = {**_AVERAGED, "mention_identification": _mentions}


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
