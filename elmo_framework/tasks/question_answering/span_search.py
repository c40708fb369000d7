"""Search the best span of a passage."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F


def best_answers(
    start_scores: Float[Tensor, "batch tokens"],
    end_scores: Float[Tensor, "batch tokens"],
    max_length: int | None = None,
) -> Int[Tensor, "batch 2"]:
    """Return the first and the last word of the span with the highest sum of its two scores.

    Ties go to the span that starts first, then to the shortest.

    Args:
        start_scores: of each word as the first; -inf where a span must not start.
        end_scores: of each word as the last; -inf where a span must not end.
        max_length: maximum number of words in a span; None for no limit.
    """
    first = (start_scores + _best_ends(end_scores, max_length)).argmax(dim=1, keepdim=True)
    places = torch.arange(end_scores.shape[1], device=end_scores.device)
    may_end = places >= first
    if max_length is not None:
        may_end &= places < first + max_length
    sums = start_scores.gather(1, first) + end_scores
    last = sums.masked_fill(~may_end, float("-inf")).argmax(dim=1, keepdim=True)
    return torch.cat([first, last], dim=1)


def _best_ends(
    end_scores: Float[Tensor, "batch tokens"], max_length: int | None
) -> Float[Tensor, "batch tokens"]:
    """Return the highest score of an end for a span that begins at each word."""
    if max_length is None:
        return end_scores.flip(1).cummax(dim=1).values.flip(1)
    width = min(max_length, end_scores.shape[1])
    padded = F.pad(end_scores, (0, width - 1), value=float("-inf"))
    return padded.unfold(1, width, 1).amax(dim=2)
