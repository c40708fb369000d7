"""How well clusters of mentions agree with the right ones, as the CoNLL-2012 scorer counts it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from typing import NamedTuple, TypeAlias, final

import numpy as np
from scipy.optimize import linear_sum_assignment  # type: ignore[import-untyped]

from elmo_framework.metrics.metric import Metric
from elmo_framework.metrics.ratios import harmonic_mean, ratio

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
    """What a metric finds of the right clusters, and how much of the predicted ones is right."""

    found: float
    total: float
    right: float
    predicted: float


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
    one mention, on either side.

    A mention may stand in several clusters, which are not made one, and several times in one of
    the right ones: it counts in the size of each as often as it stands there. Of the right
    clusters it is in, a predicted mention belongs to the last, for MUC and for the sum over
    mentions that B-cubed is. A predicted mention that is right stays once, in the first of its
    predicted clusters.

    The scores are called `muc_f1`, `b_cubed_f1`, `ceaf_f1` and `coref_f1` for their mean, each
    with `_precision` and `_recall` likewise; `mention_identification_f1` is that of the mentions
    themselves, whatever cluster they are in.
    """

    def count(self, prediction: Resolution, gold: Clusters) -> Mapping[str, float]:
        """Count the clusters of one document."""
        key = [list(cluster) for cluster in gold if cluster]
        response = _counted(prediction.clusters, {mention for held in key for mention in held})
        sums = {}
        for name, agreement in _AGREEMENTS.items():
            of_both = agreement(key, response)
            sums[f"{name}_recall/found"] = of_both.found
            sums[f"{name}_recall/total"] = of_both.total
            sums[f"{name}_precision/found"] = of_both.right
            sums[f"{name}_precision/total"] = of_both.predicted
        return sums

    def score(self, sums: Mapping[str, float]) -> dict[str, float]:
        """Return the scores."""
        scores: dict[str, float] = {}
        for name in _AGREEMENTS:
            for side in ("precision", "recall"):
                scores[f"{name}_{side}"] = ratio(
                    sums.get(f"{name}_{side}/found", 0.0), sums.get(f"{name}_{side}/total", 0.0)
                )
            precision, recall = scores[f"{name}_precision"], scores[f"{name}_recall"]
            scores[f"{name}_f1"] = harmonic_mean(precision, recall)
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
        return {"mention_recall": ratio(sums.get("found", 0.0), sums.get("total", 0.0))}


def _counted(clusters: Clusters, right: Set[Span]) -> list[list[Span]]:
    """Return predicted clusters without repeated right mentions, and without empty clusters."""
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
    """Return the number of the last cluster that each mention is in."""
    return {mention: number for number, held in enumerate(clusters) for mention in held}


def _muc(key: list[list[Span]], response: list[list[Span]]) -> _Agreement:
    owners = _owners(key)
    found = 0
    for cluster in response:
        known = [owners[mention] for mention in cluster if mention in owners]
        num_parts = len(set(known)) + len(cluster) - len(known)
        found += len(cluster) - num_parts
    return _Agreement(found, _num_links(key), found, _num_links(response))


def _b_cubed(key: list[list[Span]], response: list[list[Span]]) -> _Agreement:
    owners = _owners(key)
    found = right = 0.0
    for cluster in response:
        owned = Counter(owners[mention] for mention in cluster if mention in owners)
        for number, num_owned in owned.items():
            shared = num_owned * len(set(key[number]).intersection(cluster))
            found += shared / len(key[number])
            right += shared / len(cluster)
    return _Agreement(found, sum(map(len, key)), right, sum(map(len, response)))


def _ceaf(key: list[list[Span]], response: list[list[Span]]) -> _Agreement:
    # A right mention stands in one predicted cluster only.
    owners = _owners(response)
    similarities = np.zeros((len(key), len(response)))
    for number, cluster in enumerate(key):
        shared = Counter(owners[mention] for mention in cluster if mention in owners)
        for other, size in shared.items():
            similarities[number, other] = 2 * size / (len(cluster) + len(response[other]))
    rows, columns = linear_sum_assignment(similarities, maximize=True)
    found = float(similarities[rows, columns].sum())
    return _Agreement(found, len(key), found, len(response))


def _mentions(key: list[list[Span]], response: list[list[Span]]) -> _Agreement:
    right, predicted = set(_owners(key)), set(_owners(response))
    found = len(right & predicted)
    return _Agreement(found, len(right), found, len(predicted))


def _num_links(clusters: list[list[Span]]) -> int:
    return sum(map(len, clusters)) - len(clusters)


_AVERAGED: Mapping[str, Callable[[list[list[Span]], list[list[Span]]], _Agreement]] = {
    "muc": _muc,
    "b_cubed": _b_cubed,
    "ceaf": _ceaf,
}
_AGREEMENTS = {**_AVERAGED, "mention_identification": _mentions}
