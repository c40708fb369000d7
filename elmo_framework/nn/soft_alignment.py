"""Dot-product attention between two sequences."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor


class Alignment(NamedTuple):
    """Two sequences, each represented by vectors of the other.

    Attributes:
        first: for each vector of the first sequence, an average of the second's.
        second: for each vector of the second sequence, an average of the first's.
    """

    first: Float[Tensor, "batch tokens dim"]
    second: Float[Tensor, "batch others dim"]


def soft_alignment(
    first: Float[Tensor, "batch tokens dim"],
    first_mask: Bool[Tensor, "batch tokens"],
    second: Float[Tensor, "batch others dim"],
    second_mask: Bool[Tensor, "batch others"],
) -> Alignment:
    """Align two sequences with each other (Chen et al. 2017, equations 11 to 13).

        e_ij = a_i b_j,  a~_i = sum_j softmax_j(e_ij) b_j,  b~_j = sum_i softmax_i(e_ij) a_i

    Padding has weight 0; if the other sequence is empty, the averages are zero.
    """
    scores = torch.bmm(first, second.transpose(1, 2))
    over_second = masked_softmax(scores, second_mask[:, None, :])
    over_first = masked_softmax(scores.transpose(1, 2), first_mask[:, None, :])
    return Alignment(torch.bmm(over_second, second), torch.bmm(over_first, first))


def self_alignment(
    inputs: Float[Tensor, "batch tokens dim"], mask: Bool[Tensor, "batch tokens"]
) -> Float[Tensor, "batch tokens dim"]:
    """Align a sequence with itself: `softmax(X X^T) X`, the diagonal included."""
    scores = torch.bmm(inputs, inputs.transpose(1, 2))
    return torch.bmm(masked_softmax(scores, mask[:, None, :]), inputs)


def masked_softmax(
    scores: Float[Tensor, "*batch places"], mask: Bool[Tensor, "*#batch places"]
) -> Float[Tensor, "*batch places"]:
    """Softmax over the scores where the mask is true; 0 elsewhere, even if that is everywhere."""
    lowest = torch.finfo(scores.dtype).min
    return scores.masked_fill(~mask, lowest).softmax(dim=-1) * mask
