"""Encoder without parameters that returns its input."""

from __future__ import annotations

from typing import final

from jaxtyping import Bool, Float
from torch import Tensor

from elmo_framework.config.types import Local, require_size
from elmo_framework.encoders.encoder import Encoder


@final
@Encoder.register("pass_through")
class PassThroughEncoder(Encoder):
    """Returns its input, with padding set to zero."""

    def __init__(self, input_dim: Local[int], input_size: int | None = None) -> None:
        super().__init__()
        require_size("input_size", input_size, inferred=input_dim)
        self.input_dim = self.output_dim = input_dim

    def forward(
        self,
        inputs: Float[Tensor, "batch tokens input_dim"],
        mask: Bool[Tensor, "batch tokens"],
    ) -> Float[Tensor, "batch tokens output_dim"]:
        return inputs * mask[:, :, None]
