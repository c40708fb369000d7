"""Loss of antecedent scores, and clusters from the predicted antecedents."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from elmo_framework.metrics.coreference import Resolution
from elmo_framework.tasks.coreference.example import Mention


def with_dummy(
    scores: Float[Tensor, "spans antecedents"],
) -> Float[Tensor, "spans choices"]:
    """Prepend the score 0 of no antecedent to those of the candidates."""
    return F.pad(scores, (1, 0))


def antecedent_loss(
    choices: Float[Tensor, "spans choices"], clusters: Int[Tensor, " spans"]
) -> Float[Tensor, ""]:
    """Return `-sum_i log sum_{j in GOLD(i)} P(j | i)` (Lee et al. 2017, section 3).

    GOLD(i) are the candidates in the cluster of span i, or no antecedent if there are none.

    Args:
        choices: the scores of no antecedent and of the candidates, the nearest first.
        clusters: the number of the cluster of each span; 0 for a span that is not a mention.
    """
    is_gold = _gold(clusters, choices.shape[1] - 1)
    gold = choices.masked_fill(~is_gold, float("-inf"))
    return (choices.logsumexp(dim=1) - gold.logsumexp(dim=1)).sum()


def resolved(spans: Sequence[Sequence[int]], antecedents: Sequence[int]) -> Resolution:
    """Return the clusters of spans that are linked by their antecedents.

    Args:
        spans: the first and the last word of each, in the order of the document.
        antecedents: the distance in spans from each span back to its antecedent; 0 for none.
    """
    mentions = [Mention(start, end) for start, end in spans]
    clusters: list[list[Mention]] = []
    owners: dict[int, list[Mention]] = {}
    for number, back in enumerate(antecedents):
        if not back:
            continue
        antecedent = number - back
        if antecedent not in owners:
            owners[antecedent] = [mentions[antecedent]]
            clusters.append(owners[antecedent])
        owners[number] = owners[antecedent]
        owners[number].append(mentions[number])
    return Resolution(tuple(sorted(map(tuple, clusters))), tuple(mentions))


def _gold(clusters: Int[Tensor, " spans"], num_antecedents: int) -> Bool[Tensor, "spans choices"]:
    """Return which choices are correct."""
    back = torch.arange(1, num_antecedents + 1, device=clusters.device)
    antecedents = torch.arange(len(clusters), device=clusters.device)[:, None] - back
    is_same = clusters[antecedents.clamp(min=0)] == clusters[:, None]
    is_gold = is_same & (antecedents >= 0) & (clusters > 0)[:, None]
    return torch.cat([~is_gold.any(dim=1, keepdim=True), is_gold], dim=1)
