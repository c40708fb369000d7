"""The best spans of a text, of which no two cross."""

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
) -> Int[Tensor, " kept"]:
    """Choose spans, best first, as long as they cross none that was chosen (Lee et al. 2017, §5).

    Two spans cross when they share words and neither holds the other. Of equal scores the first
    is the better.

    Args:
        scores: the higher, the better.
        starts: the first word of each span.
        ends: the last word of each span.
        limit: how many are chosen at most.

    Returns:
        the numbers of the chosen spans, ordered by their first and their last word.
    """
    order = scores.argsort(descending=True, stable=True)
    ranked_starts, ranked_ends = starts[order].tolist(), ends[order].tolist()
    chosen = _not_crossing(ranked_starts, ranked_ends, limit)
    chosen.sort(key=lambda rank: (ranked_starts[rank], ranked_ends[rank]))
    return order[torch.tensor(chosen, dtype=torch.long, device=order.device)]


def _not_crossing(starts: Sequence[int], ends: Sequence[int], limit: int) -> list[int]:
    """Return the places of the spans that cross none before them, at most `limit`."""
    last_end: dict[int, int] = {}  # of the spans that begin at a word, the last end
    first_start: dict[int, int] = {}  # of those that end at a word, the first start
    chosen: list[int] = []
    for place, (start, end) in enumerate(zip(starts, ends, strict=True)):
        if len(chosen) >= limit:
            break
        crosses = any(last_end.get(word, 0) > end for word in range(start + 1, end + 1)) or any(
            first_start.get(word, start) < start for word in range(start, end)
        )
        if not crosses:
            chosen.append(place)
            last_end[start] = max(end, last_end.get(start, 0))
            first_start[end] = min(start, first_start.get(end, start))
    return chosen
