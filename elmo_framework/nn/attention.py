"""Attention between two sequences of vectors, and scores for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from math import sqrt
from typing import TypeAlias

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

Score: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""Scores all pairs of vectors of two sequences: "batch rows columns"."""

TERMS: Mapping[str, tuple[int, int] | None] = {
    "x": (1, 0),
    "y": (0, 1),
    "x*y": None,
    "y*x": None,
    "x+y": (1, 1),
    "y+x": (1, 1),
    "x-y": (1, -1),
    "y-x": (-1, 1),
}
"""The signs of x and y in each term of `combination_scores`; None for their product."""


def dot_products(
    rows: Float[Tensor, "batch rows dim"], columns: Float[Tensor, "batch columns dim"]
) -> Float[Tensor, "batch rows columns"]:
    """Return the product of each row with each column."""
    return torch.bmm(rows, columns.transpose(1, 2))


def soft_alignment(
    first: Float[Tensor, "batch tokens dim"],
    first_mask: Bool[Tensor, "batch tokens"],
    second: Float[Tensor, "batch others dim"],
    second_mask: Bool[Tensor, "batch others"],
    score: Score = dot_products,
) -> tuple[Float[Tensor, "batch tokens dim"], Float[Tensor, "batch others dim"]]:
    """Align two sequences with each other (Chen et al. 2017, equations 11 to 13).

        e_ij = score(a_i, b_j),  a~_i = sum_j softmax_j(e_ij) b_j,  b~_j = sum_i softmax_i(e_ij) a_i

    Padding has weight 0; if the other sequence is empty, the averages are zero.

    Returns:
        a~, averages of the second sequence for each vector of the first, and b~, the reverse.
    """
    scores = score(first, second)
    over_second = masked_softmax(scores, second_mask[:, None, :])
    over_first = masked_softmax(scores.transpose(1, 2), first_mask[:, None, :])
    return torch.bmm(over_second, second), torch.bmm(over_first, first)


def self_alignment(
    inputs: Float[Tensor, "batch tokens dim"], mask: Bool[Tensor, "batch tokens"]
) -> Float[Tensor, "batch tokens dim"]:
    """Align a sequence with itself: `softmax(X X^T) X`, the diagonal included."""
    scores = dot_products(inputs, inputs)
    return torch.bmm(masked_softmax(scores, mask[:, None, :]), inputs)


def masked_softmax(
    scores: Float[Tensor, "*batch places"], mask: Bool[Tensor, "*#batch places"]
) -> Float[Tensor, "*batch places"]:
    """Softmax over the scores where the mask is true; 0 elsewhere, even if that is everywhere."""
    return _masked(scores, mask).softmax(dim=-1) * mask


class TrilinearScore(nn.Module):
    """s_ij = w_1 x_i + w_2 y_j + w_3 (x_i * y_j).

    It has no bias, because the softmax over the scores would cancel it.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.weight = combination_weight(3, dim)

    def forward(
        self, rows: Float[Tensor, "batch rows dim"], columns: Float[Tensor, "batch columns dim"]
    ) -> Float[Tensor, "batch rows columns"]:
        return combination_scores(rows, columns, self.weight, ("x", "y", "x*y"))


def combination_weight(num_terms: int, dim: int) -> nn.Parameter:
    """Return a random weight for `combination_scores`."""
    weight = nn.Parameter(torch.empty(num_terms, dim))
    bound = sqrt(6 / (num_terms * dim + 1))
    nn.init.uniform_(weight, -bound, bound)
    return weight


def combination_scores(
    rows: Float[Tensor, "batch rows dim"],
    columns: Float[Tensor, "batch columns dim"],
    weight: Float[Tensor, "terms dim"],
    terms: Sequence[str],
) -> Float[Tensor, "batch rows columns"]:
    """Return the sum of w_t t(x_i, y_j) over terms t, for all pairs of vectors x_i and y_j.

    Args:
        rows: the vectors x.
        columns: the vectors y.
        weight: the vectors w.
        terms: of `TERMS`.
    """
    left, right = list[Tensor](), list[Tensor]()
    single: tuple[list[Tensor], list[Tensor]] = ([], [])
    for term, own in zip(terms, weight, strict=True):
        signs = TERMS[term]
        if signs is None:
            left.append(rows * own)
            right.append(columns)
        for weights, sign in zip(single, signs or (), strict=False):
            weights += [own if sign > 0 else -own] if sign else []
    # One product for all terms, so that no second tensor of the scores' size is added.
    of_rows, of_columns = single
    if of_rows:
        left.append((rows @ reduce(torch.add, of_rows))[:, :, None])
        right.append(_ones(columns))
    if of_columns:
        left.append(_ones(rows))
        right.append((columns @ reduce(torch.add, of_columns))[:, :, None])
    return torch.cat(left, dim=2) @ torch.cat(right, dim=2).transpose(1, 2)


class BiAttention(nn.Module):
    """Attention from a passage to a question and back (Seo et al. 2017, section 2.4).

    With scores s_ij of passage words p_i and question words q_j, trilinear by default:
    a_i = sum_j softmax_j(s_ij) q_j;  m = sum_i softmax_i(max_j s_ij) p_i;
    y_i = [p_i; a_i; p_i * a_i; p_i * m].
    """

    def __init__(self, dim: int, score: nn.Module | None = None) -> None:
        super().__init__()
        self.score = TrilinearScore(dim) if score is None else score
        self.output_dim = 4 * dim

    def forward(
        self,
        passage: Float[Tensor, "batch passage dim"],
        question: Float[Tensor, "batch question dim"],
        passage_mask: Bool[Tensor, "batch passage"],
        question_mask: Bool[Tensor, "batch question"],
    ) -> Float[Tensor, "batch passage output_dim"]:
        """Return vectors of the passage's words; those at padding are meaningless."""
        scores = _masked(self.score(passage, question), question_mask[:, None])
        attended = scores.softmax(dim=2) @ question
        weights = _masked(scores.amax(dim=2), passage_mask).softmax(dim=1)
        summary = weights[:, None] @ passage  # batch 1 dim
        return torch.cat([passage, attended, passage * attended, passage * summary], dim=2)


class TrilinearSelfAttention(nn.Module):
    """Attention of each word to the other words or to none (Clark and Gardner 2018, section 3.1).

    a_i = sum_j exp(s_ij) x_j / (exp(b) + sum_j exp(s_ij)) over j != i;
    y_i = [x_i; a_i; x_i * a_i]. The learned b is what a word may attend to instead of others.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.score = TrilinearScore(dim)
        self.nothing = nn.Parameter(torch.zeros(()))
        self.output_dim = 3 * dim

    def forward(
        self,
        inputs: Float[Tensor, "batch tokens dim"],
        mask: Bool[Tensor, "batch tokens"],
    ) -> Float[Tensor, "batch tokens output_dim"]:
        """Return vectors of the words; those at padding are meaningless."""
        itself = torch.eye(inputs.shape[1], dtype=torch.bool, device=mask.device)
        scores = _masked(self.score(inputs, inputs), mask[:, None] & ~itself)
        nothing = self.nothing.to(scores.dtype).expand(*scores.shape[:2], 1)
        weights = torch.cat([scores, nothing], dim=2).softmax(dim=2)
        attended = weights[:, :, :-1] @ inputs
        return torch.cat([inputs, attended, inputs * attended], dim=2)


def _ones(vectors: Tensor) -> Tensor:
    return vectors.new_ones(*vectors.shape[:2], 1)


def _masked(scores: Tensor, mask: Tensor) -> Tensor:
    """Set masked scores to the smallest number; the softmax of a fully masked row stays finite."""
    return scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
