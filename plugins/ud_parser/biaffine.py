"""Deep biaffine attention (Dozat and Manning 2017)."""

from __future__ import annotations

from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from elmo_framework.nn import VariationalDropout


@final
class Projection(nn.Module):
    """A linear layer with an activation and dropout: a role of a word, such as that of a head."""

    def __init__(self, input_dim: int, output_dim: int, dropout: float) -> None:
        super().__init__()
        self.linear = nn.Linear(input_dim, output_dim)
        nn.init.orthogonal_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)
        self.dropout = VariationalDropout(dropout)

    def forward(
        self, vectors: Float[Tensor, "batch tokens input_dim"]
    ) -> Float[Tensor, "batch tokens output_dim"]:
        """Project the vectors of words."""
        projected: Tensor = self.dropout(
            nn.functional.leaky_relu(self.linear(vectors), negative_slope=0.1)
        )
        return projected


@final
class ArcScorer(nn.Module):
    """Scores each head of each word: s(d, h) = x_d' U y_h + b' y_h (equation 6)."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(dim + 1, dim))

    def forward(
        self,
        dependents: Float[Tensor, "batch tokens dim"],
        heads: Float[Tensor, "batch heads dim"],
    ) -> Float[Tensor, "batch tokens heads"]:
        """Score all pairs."""
        scores: Tensor = with_one(dependents) @ self.weight @ heads.transpose(1, 2)
        return scores


@final
class LabelScorer(nn.Module):
    """Scores the labels of pairs: s_l(d, h) = x_d' U_l y_h + u_l' x_d + v_l' y_h + b_l (eq. 3)."""

    def __init__(self, dim: int, num_labels: int) -> None:
        super().__init__()
        self.num_labels = num_labels
        self.weight = nn.Parameter(torch.zeros(dim + 1, num_labels * (dim + 1)))

    def forward(
        self,
        dependents: Float[Tensor, "batch tokens dim"],
        heads: Float[Tensor, "batch tokens dim"],
    ) -> Float[Tensor, "batch tokens labels"]:
        """Score the labels of each word with one head."""
        by_label = with_one(dependents) @ self.weight
        by_label = by_label.view(*dependents.shape[:2], self.num_labels, -1)
        scores: Tensor = (by_label @ with_one(heads)[:, :, :, None]).squeeze(3)
        return scores


def with_one(vectors: Float[Tensor, "batch tokens dim"]) -> Float[Tensor, "batch tokens more"]:
    """Append 1 to each vector, so that one product has the terms of a biaffine function."""
    return torch.cat([vectors, torch.ones_like(vectors[..., :1])], dim=-1)
