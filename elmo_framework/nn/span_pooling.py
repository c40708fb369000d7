"""Attention over the words of spans, for all spans of a text or some of them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F


@dataclass(frozen=True, slots=True)
class SpanWindows:
    """Windows that start at each word and are as long as the longest span.

    Attributes:
        positions: positions in the text; beyond its end, the last word.
        inside: whether a position is in the same sentence as the first, so that a span may end
            there.
    """

    positions: Int[Tensor, "words width"]
    inside: Bool[Tensor, "words width"]

    @classmethod
    def of(cls, sentences: Int[Tensor, " words"], max_width: int) -> SpanWindows:
        """Return the windows of a text.

        Args:
            sentences: index of the sentence of each word.
            max_width: maximum number of words of a span.
        """
        num_words = len(sentences)
        words = torch.arange(num_words, device=sentences.device)[:, None]
        places = words + torch.arange(max_width, device=sentences.device)
        positions = places.clamp(max=num_words - 1)
        inside = (places < num_words) & (sentences[positions] == sentences[:, None])
        return cls(positions, inside)


def span_attention(
    scores: Float[Tensor, " words"], windows: SpanWindows
) -> Float[Tensor, "words width width"]:
    """Return the weight of each word in each span: the softmax of the scores of its words.

    The last dimension is that of the words of the window, the one before it the length of the
    span minus one. Spans that cross a sentence boundary have weights only inside the sentence.
    """
    max_width = windows.positions.shape[1]
    window_scores = F.embedding(windows.positions, scores[:, None]).squeeze(2)
    up_to = torch.ones(max_width, max_width, dtype=torch.bool, device=scores.device).tril()
    counts = up_to & windows.inside[:, None, :]
    return window_scores[:, None, :].masked_fill(~counts, float("-inf")).softmax(dim=2)


def weighted_windows(
    values: Float[Tensor, "words dim"],
    positions: Int[Tensor, "rows width"],
    weights: Float[Tensor, "rows spans width"],
) -> Float[Tensor, "rows spans dim"]:
    """Return weighted sums of the vectors at some positions, several for each row of them."""
    return torch.bmm(weights, F.embedding(positions, values))
