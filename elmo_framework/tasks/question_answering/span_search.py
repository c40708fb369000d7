"""The best answer of a passage."""

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

    Args:
        start_scores: of each word as the first; -inf where none may begin.
        end_scores: of each word as the last; -inf where none may end.
        max_length: the largest number of words in a span; None for any.
    """
    num_tokens = start_scores.shape[1]
    width = num_tokens if max_length is None else min(max_length, num_tokens)
    padded = F.pad(end_scores, (0, width - 1), value=float("-inf"))
    sums = start_scores[:, :, None] + padded.unfold(1, width, 1)  # batch tokens width
    best = sums.flatten(start_dim=1).argmax(dim=1)
    first = best // width
    return torch.stack([first, first + best % width], dim=1)
