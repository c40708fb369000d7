"""Select the best spans of a text such that no two cross."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor


def non_crossing_spans(
    scores: Float[Tensor, " spans"],
    starts: Int[Tensor, " spans"],
    ends: Int[Tensor, " spans"],
    limit: int,
) -> Int[Tensor, " selected"]:
    """Select spans greedily, best first, that cross none selected before (Lee et al. 2017, §5).

    Two spans cross when they overlap and neither contains the other. Of equal scores the first
    is selected first.

    Args:
        scores: larger is better.
        starts: the first word of each span.
        ends: the last word of each span.
        limit: maximum number of selected spans.

    Returns:
        the indices of the selected spans, ordered by their first and their last word.
    """
    order = scores.argsort(descending=True, stable=True)
    ranked_starts, ranked_ends = starts[order].tolist(), ends[order].tolist()
    selected = _not_crossing(ranked_starts, ranked_ends, limit)
    selected.sort(key=lambda rank: (ranked_starts[rank], ranked_ends[rank]))
    return order[torch.tensor(selected, dtype=torch.long, device=order.device)]


def _not_crossing(starts: Sequence[int], ends: Sequence[int], limit: int) -> list[int]:
    """Return the indices of at most `limit` spans that cross none selected before."""
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
