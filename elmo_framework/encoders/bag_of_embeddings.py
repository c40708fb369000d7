"""Pooling by the sum or the average of vectors."""

from __future__ import annotations

from typing import final

from jaxtyping import Bool, Float
from torch import Tensor

from elmo_framework.config.types import Local, require_size
from elmo_framework.encoders.pooler import Pooler
from elmo_framework.nn.masking import masked_mean, masked_sum


@final
@Pooler.register("bag_of_embeddings")
class BagOfEmbeddingsPooler(Pooler):
    """Adds or averages the vectors of a sequence.

    Args:
        averaged: whether the sum is divided by the number of vectors.
    """

    def __init__(
        self, input_dim: Local[int], averaged: bool = False, embedding_dim: int | None = None
    ) -> None:
        super().__init__()
        require_size("embedding_dim", embedding_dim, inferred=input_dim)
        self.output_dim = input_dim
        self.averaged = averaged

    def forward(
        self,
        inputs: Float[Tensor, "batch tokens input_dim"],
        mask: Bool[Tensor, "batch tokens"],
    ) -> Float[Tensor, "batch output_dim"]:
        return masked_mean(inputs, mask) if self.averaged else masked_sum(inputs, mask)
