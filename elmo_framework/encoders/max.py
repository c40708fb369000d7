"""Max-pooling."""

from __future__ import annotations

from typing import final

from jaxtyping import Bool, Float
from torch import Tensor

from elmo_framework.config.types import Local
from elmo_framework.encoders.pooler import Pooler
from elmo_framework.nn.masking import masked_max


@final
@Pooler.register("max")
class MaxPooler(Pooler):
    """Takes the maximum of each dimension over a sequence."""

    def __init__(self, input_dim: Local[int]) -> None:
        super().__init__()
        self.output_dim = input_dim

    def forward(
        self,
        inputs: Float[Tensor, "batch tokens input_dim"],
        mask: Bool[Tensor, "batch tokens"],
    ) -> Float[Tensor, "batch output_dim"]:
        return masked_max(inputs, mask)
