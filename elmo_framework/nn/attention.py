"""Attention between two sequences of vectors, with scores of dot products or trilinear ones."""

from __future__ import annotations

from math import sqrt

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn


def soft_alignment(
    first: Float[Tensor, "batch tokens dim"],
    first_mask: Bool[Tensor, "batch tokens"],
    second: Float[Tensor, "batch others dim"],
    second_mask: Bool[Tensor, "batch others"],
) -> tuple[Float[Tensor, "batch tokens dim"], Float[Tensor, "batch others dim"]]:
    """Align two sequences with each other (Chen et al. 2017, equations 11 to 13).

        e_ij = a_i b_j,  a~_i = sum_j softmax_j(e_ij) b_j,  b~_j = sum_i softmax_i(e_ij) a_i

    Padding has weight 0; if the other sequence is empty, the averages are zero.

    Returns:
        a~, averages of the second sequence for each vector of the first, and b~, the reverse.
    """
    scores = torch.bmm(first, second.transpose(1, 2))
    over_second = masked_softmax(scores, second_mask[:, None, :])
    over_first = masked_softmax(scores.transpose(1, 2), first_mask[:, None, :])
    return torch.bmm(over_second, second), torch.bmm(over_first, first)


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
    return _masked(scores, mask).softmax(dim=-1) * mask


class TrilinearScore(nn.Module):
    """s_ij = w_1 x_i + w_2 y_j + w_3 (x_i * y_j).

    It has no bias, because the softmax over the scores would cancel it.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(3, dim))
        bound = sqrt(6 / (3 * dim + 1))
        nn.init.uniform_(self.weight, -bound, bound)

    def forward(
        self, rows: Float[Tensor, "batch rows dim"], columns: Float[Tensor, "batch columns dim"]
    ) -> Float[Tensor, "batch rows columns"]:
        of_rows, of_columns, of_both = self.weight
        # One product for all three terms, so that no second tensor of the scores' size is added.
        left = torch.cat([rows * of_both, (rows @ of_rows)[:, :, None], _ones(rows)], dim=2)
        right = torch.cat([columns, _ones(columns), (columns @ of_columns)[:, :, None]], dim=2)
        return left @ right.transpose(1, 2)


class BiAttention(nn.Module):
    """Attention from a passage to a question and back (Seo et al. 2017, section 2.4).

    With scores s_ij of passage words p_i and question words q_j:
    a_i = sum_j softmax_j(s_ij) q_j;  m = sum_i softmax_i(max_j s_ij) p_i;
    y_i = [p_i; a_i; p_i * a_i; p_i * m].
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.score = TrilinearScore(dim)
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
