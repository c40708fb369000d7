"""Spans of a text: attention over their words, and selection of the best."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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


def best_spans(scores: Float[Tensor, " spans"], limit: int) -> Int[Tensor, " selected"]:
    """Return the indices of the best spans, at most `limit`, in the order of the spans."""
    return scores.topk(min(limit, len(scores))).indices.sort().values


def num_spans(lengths: Iterable[int], max_width: int) -> int:
    """Return the number of spans of at most `max_width` words inside sentences.

    Args:
        lengths: number of words of each sentence.
        max_width: maximum number of words of a span.
    """
    return sum(length - width for length in lengths for width in range(min(length, max_width)))


def non_crossing_spans(starts: Sequence[int], ends: Sequence[int], limit: int) -> list[int]:
    """Select spans greedily, best first, that cross none selected before (Lee et al. 2017, §5).

    Two spans cross when they overlap and neither contains the other.

    Args:
        starts: the first word of each span, the best span first.
        ends: the last word of each span.
        limit: maximum number of selected spans.

    Returns:
        the indices of the selected spans, best first.
    """
    last_end: dict[int, int] = {}  # of the spans that begin at a word, the last end
    first_start: dict[int, int] = {}  # of those that end at a word, the first start
    selected: list[int] = []
    for place, (start, end) in enumerate(zip(starts, ends, strict=True)):
        if len(selected) >= limit:
            break
        crosses = any(last_end.get(word, 0) > end for word in range(start + 1, end + 1)) or any(
            first_start.get(word, start) < start for word in range(start, end)
        )
        if not crosses:
            selected.append(place)
            last_end[start] = max(end, last_end.get(start, 0))
            first_start[end] = min(start, first_start.get(end, start))
    return selected
