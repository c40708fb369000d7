"""Vectors of spans of words: for all spans of a text, or for some of them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F


@dataclass(frozen=True, slots=True)
class SpanWindows:
    """The words from each word on, as many as the widest span has.

    Attributes:
        positions: their places in the text; those behind its end are its last word.
        inside: whether they belong to the sentence of the first, so that a span may end there.
    """

    positions: Int[Tensor, "words width"]
    inside: Bool[Tensor, "words width"]

    @classmethod
    def of(cls, sentences: Int[Tensor, " words"], max_width: int) -> SpanWindows:
        """Return the windows of a text.

        Args:
            sentences: a number for the sentence that each word belongs to.
            max_width: how many words a span has at most.
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
    """Return how much each word counts in each span: the softmax of the scores of its words.

    The last dimension is the words of the window, the one before it the width of the span less
    one. Spans that leave their sentence have weights for the words inside it alone.
    """
    max_width = windows.positions.shape[1]
    held = F.embedding(windows.positions, scores[:, None]).squeeze(2)
    up_to = torch.ones(max_width, max_width, dtype=torch.bool, device=scores.device).tril()
    counts = up_to & windows.inside[:, None, :]
    return held[:, None, :].masked_fill(~counts, float("-inf")).softmax(dim=2)


def weighted_windows(
    values: Float[Tensor, "words dim"],
    positions: Int[Tensor, "rows width"],
    weights: Float[Tensor, "rows spans width"],
) -> Float[Tensor, "rows spans dim"]:
    """Return weighted sums of the vectors at some positions, several for each row of them."""
    return torch.bmm(weights, F.embedding(positions, values))
