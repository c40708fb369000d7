"""Attention by a trilinear score: between a passage and a question, and inside a passage."""

from __future__ import annotations

from math import sqrt

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn


class TrilinearScore(nn.Module):
    """s_ij = w_1 x_i + w_2 y_j + w_3 (x_i * y_j).

    There is no constant: whatever normalises the scores would take it away again.

    Args:
        dim: the width of the vectors.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(3, dim))
        bound = sqrt(6 / (3 * dim + 1))
        nn.init.uniform_(self.weight, -bound, bound)

    def forward(
        self, rows: Float[Tensor, "batch rows dim"], columns: Float[Tensor, "batch columns dim"]
    ) -> Float[Tensor, "batch rows columns"]:
        """Score each pair of vectors."""
        of_rows, of_columns, of_both = self.weight
        # One product for all three terms: nothing as large as the scores has to be added to them.
        left = torch.cat([rows * of_both, (rows @ of_rows)[:, :, None], _ones(rows)], dim=2)
        right = torch.cat([columns, _ones(columns), (columns @ of_columns)[:, :, None]], dim=2)
        return left @ right.transpose(1, 2)


class BiAttention(nn.Module):
    """Attention from a passage to a question and back (Seo et al. 2017, section 2.4).

    With scores s_ij of passage words p_i and question words q_j:
    a_i = sum_j softmax_j(s_ij) q_j;  m = sum_i softmax_i(max_j s_ij) p_i;
    y_i = [p_i; a_i; p_i * a_i; p_i * m].

    Args:
        dim: the width of the vectors.
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
        """Attend; what stands at the padding of the passage means nothing."""
        scores = _masked(self.score(passage, question), question_mask[:, None])
        attended = scores.softmax(dim=2) @ question
        weights = _masked(scores.amax(dim=2), passage_mask).softmax(dim=1)
        summary = weights[:, None] @ passage  # batch 1 dim
        return torch.cat([passage, attended, passage * attended, passage * summary], dim=2)


class TrilinearSelfAttention(nn.Module):
    """Attention of each word to the others, or to nothing (Clark and Gardner 2018, section 3.1).

    a_i = sum_j exp(s_ij) x_j / (exp(b) + sum_j exp(s_ij)) over j != i;
    y_i = [x_i; a_i; x_i * a_i]. The learned b is what a word may attend to instead of others.

    Args:
        dim: the width of the vectors.
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
        """Attend; what stands at padding means nothing."""
        itself = torch.eye(inputs.shape[1], dtype=torch.bool, device=mask.device)
        scores = _masked(self.score(inputs, inputs), mask[:, None] & ~itself)
        nothing = self.nothing.to(scores.dtype).expand(*scores.shape[:2], 1)
        weights = torch.cat([scores, nothing], dim=2).softmax(dim=2)
        attended = weights[:, :, :-1] @ inputs
        return torch.cat([inputs, attended, inputs * attended], dim=2)


def _ones(vectors: Tensor) -> Tensor:
    return vectors.new_ones(*vectors.shape[:2], 1)


def _masked(scores: Tensor, mask: Tensor) -> Tensor:
    """Give scores of what is not there; a row without any true value stays finite."""
    return scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
