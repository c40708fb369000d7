"""Coreference scores of the CoNLL-2012 shared task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from typing import NamedTuple, TypeAlias, final

import numpy as np

from elmo_framework.io.extras import import_extra
from elmo_framework.metrics.metric import Metric
from elmo_framework.metrics.ratios import harmonic_mean, ratio

Span: TypeAlias = tuple[int, int]
"""The first and the last word of a mention."""

Clusters: TypeAlias = Sequence[Collection[Span]]

_PARTS = ("recall/found", "recall/total", "precision/found", "precision/total")
_Agreement: TypeAlias = tuple[float, float, float, float]
"""The numerator and the denominator of recall, and those of precision: `_PARTS`."""


class Resolution(NamedTuple):
    """The prediction for a document.

    Attributes:
        clusters: the mentions of one entity each; no mention is in two of them.
        spans: all spans that were considered as mentions.
    """

    clusters: tuple[tuple[Span, ...], ...]
    spans: tuple[Span, ...]


@final
@Metric.register("conll_coref_scores")
class ConllCoref(Metric):
    """The scores of the CoNLL-2012 shared task: MUC, B-cubed, CEAF and their mean.

    With the gold clusters K and the predicted ones R, recall is

        MUC      sum_K (|K| - parts(K, R)) / sum_K (|K| - 1)
        B-cubed  sum_K sum_R |K & R|^2 / |K|  /  sum_K |K|
        CEAF     max over one-to-one maps m of sum_K 2 |K & m(K)| / (|K| + |m(K)|)  /  number of K

    where parts(K, R) is the number of parts into which R divides K; a mention that is in no R is
    one part. Precision is the same with K and R exchanged. Numerators and denominators are summed
    over the documents before the division, as in version 8 of the official scorer
    (Pradhan et al. 2014). Mentions that only one side has, and clusters of one mention, are not
    removed on either side.

    A mention may be in several clusters, which are not merged, and several times in one gold
    cluster: it counts in the size of each as often as it occurs there. If several gold clusters
    contain a predicted mention, it belongs to the last of them, for MUC and for the sum over
    mentions of B-cubed. A predicted mention that is correct is counted once, in the first of its
    predicted clusters.

    The scores are called `muc_f1`, `b_cubed_f1`, `ceaf_f1` and `coref_f1` for their mean, each
    with `_precision` and `_recall` likewise; `mention_identification_f1` is that of the mentions
    themselves, regardless of their clusters.
    """

    def count(self, prediction: Resolution, gold: Clusters) -> Mapping[str, float]:
        key = [list(cluster) for cluster in gold if cluster]
        response = _counted(
            prediction.clusters, {mention for cluster in key for mention in cluster}
        )
        return {
            f"{name}_{part}": value
            for name, agreement in _AGREEMENTS.items()
            for part, value in zip(_PARTS, agreement(key, response), strict=True)
        }

    def score(self, sums: Mapping[str, float]) -> dict[str, float]:
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
@Metric.register("mention_recall")
class MentionRecall(Metric):
    """The fraction of gold mentions among the considered spans; `mention_recall`."""

    def count(self, prediction: Resolution, gold: Clusters) -> Mapping[str, float]:
        mentions = {mention for cluster in gold for mention in cluster}
        recalled = mentions.intersection(prediction.spans)
        return {"found": float(len(recalled)), "total": float(len(mentions))}

    def score(self, sums: Mapping[str, float]) -> dict[str, float]:
        return {"mention_recall": ratio(sums.get("found", 0.0), sums.get("total", 0.0))}


def _counted(clusters: Clusters, gold: Set[Span]) -> list[list[Span]]:
    """Return predicted clusters without repeated correct mentions, and without empty clusters."""
    seen: set[Span] = set()
    counted = []
    for cluster in clusters:
        own = []
        for mention in cluster:
            if mention not in seen:
                own.append(mention)
            if mention in gold:
                seen.add(mention)
        if own:
            counted.append(own)
    return counted


def _owners(clusters: Iterable[Iterable[Span]]) -> dict[Span, int]:
    """Return the number of the last cluster that each mention is in."""
    return {mention: number for number, cluster in enumerate(clusters) for mention in cluster}


def _muc(key: list[list[Span]], response: list[list[Span]]) -> _Agreement:
    owners = _owners(key)
    correct = 0
    for cluster in response:
        owned = [owners[mention] for mention in cluster if mention in owners]
        num_parts = len(set(owned)) + len(cluster) - len(owned)
        correct += len(cluster) - num_parts
    return correct, _num_links(key), correct, _num_links(response)


def _b_cubed(key: list[list[Span]], response: list[list[Span]]) -> _Agreement:
    owners = _owners(key)
    recalled = correct = 0.0
    for cluster in response:
        owned = Counter(owners[mention] for mention in cluster if mention in owners)
        for number, num_owned in owned.items():
            shared = num_owned * len(set(key[number]).intersection(cluster))
            recalled += shared / len(key[number])
            correct += shared / len(cluster)
    return recalled, sum(map(len, key)), correct, sum(map(len, response))


def _ceaf(key: list[list[Span]], response: list[list[Span]]) -> _Agreement:
    # A correct mention is in only one predicted cluster.
    owners = _owners(response)
    similarities = np.zeros((len(key), len(response)))
    for number, cluster in enumerate(key):
        shared = Counter(owners[mention] for mention in cluster if mention in owners)
        for other, size in shared.items():
            similarities[number, other] = 2 * size / (len(cluster) + len(response[other]))
    optimize = import_extra("scipy.optimize", "statistics")
    rows, columns = optimize.linear_sum_assignment(similarities, maximize=True)
    similarity = float(similarities[rows, columns].sum())
    return similarity, len(key), similarity, len(response)


def _mentions(key: list[list[Span]], response: list[list[Span]]) -> _Agreement:
    gold, predicted = set(_owners(key)), set(_owners(response))
    correct = len(gold & predicted)
    return correct, len(gold), correct, len(predicted)


def _num_links(clusters: list[list[Span]]) -> int:
    return sum(map(len, clusters)) - len(clusters)


_AVERAGED: Mapping[str, Callable[[list[list[Span]], list[list[Span]]], _Agreement]] = {
    "muc": _muc,
    "b_cubed": _b_cubed,
    "ceaf": _ceaf,
}
_AGREEMENTS = {**_AVERAGED, "mention_identification": _mentions}
