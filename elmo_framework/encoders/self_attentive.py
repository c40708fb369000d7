"""Pooling by a weighted average with learned weights."""

from __future__ import annotations

from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from elmo_framework.config.types import Local
from elmo_framework.encoders.pooler import Pooler
from elmo_framework.nn.attention import masked_softmax


@final
@Pooler.register("self_attentive")
class SelfAttentivePooler(Pooler):
    """Averages a sequence with self-attention: X^T softmax(X v) (McCann et al. 2017, 5.3)."""

    def __init__(self, input_dim: Local[int]) -> None:
        super().__init__()
        self.output_dim = input_dim
        # The softmax would cancel a bias.
        self.projection = nn.Linear(input_dim, 1, bias=False)

    def forward(
        self,
        inputs: Float[Tensor, "batch tokens input_dim"],
        mask: Bool[Tensor, "batch tokens"],
    ) -> Float[Tensor, "batch output_dim"]:
        weights = masked_softmax(self.projection(inputs).squeeze(2), mask)
        cleared = inputs.masked_fill(~mask[:, :, None], 0)
        return torch.bmm(weights[:, None, :], cleared).squeeze(1)
