"""Tags with the largest sum of probabilities, as AllenNLP's labeler decodes them.

Its sums begin at 100,000, so that in 32 bits they are multiples of 1/128, and equal sums are
common. Which of those is taken is a matter of `topk` over the tags, the start and the end. All of
this is repeated here, as the tags depend on it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

_FIRST_SUM = 100_000.0
_NUM_BOUNDS = 2
_START, _END = -2, -1
_NEVER = float("-inf")


def tags_of_largest_sums(
    probabilities: Float[Tensor, "batch tokens tags"],
    lengths: Sequence[int],
    *,
    start: Float[Tensor, " tags"],
    transitions: Float[Tensor, "tags tags"],
) -> list[list[int]]:
    """Return the tags of each row.

    Args:
        probabilities: of each tag at each word.
        lengths: the number of words of each row.
        start: 0 for a tag that may come first, below 0 for others.
        transitions: 0 where the tag of the row may be followed by that of the column.
    """
    allowed = _with_bounds(start.float().cpu(), transitions.float().cpu())
    rows = probabilities.float().cpu()
    return [_best(row[:length], allowed) for row, length in zip(rows, lengths, strict=True)]


def _with_bounds(start: Tensor, transitions: Tensor) -> Tensor:
    number = len(start)
    allowed = torch.full((number + _NUM_BOUNDS, number + _NUM_BOUNDS), _NEVER)
    allowed[:number, :number] = transitions.masked_fill(transitions < 0, _NEVER)
    allowed[_START, :number] = start.masked_fill(start < 0, _NEVER)
    allowed[:number, _END] = 0
    return allowed


def _best(row: Float[Tensor, "tokens tags"], allowed: Tensor) -> list[int]:
    never = torch.full((len(row), _NUM_BOUNDS), _NEVER)
    sums = torch.zeros(len(allowed))
    sums[_START] = _FIRST_SUM
    pointers = []
    for added in torch.cat([row, never], dim=1):
        best, previous = (sums[:, None] + allowed).topk(1, dim=0)
        sums = added + best[0]
        pointers.append(previous[0].tolist())
    _, last = (sums[:, None] + allowed).topk(1, dim=0)
    tags = [last[0].tolist()[_END]]
    for previous in reversed(pointers):
        tags.append(previous[tags[-1]])
    return tags[-2::-1]  # without the start
