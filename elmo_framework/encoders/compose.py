"""Composition of encoders."""

from __future__ import annotations

from typing import final

from jaxtyping import Bool, Float
from torch import Tensor, nn

from elmo_framework.config.types import Lazy, Local
from elmo_framework.encoders.encoder import Encoder


@final
@Encoder.register("compose")
class ComposeEncoder(Encoder):
    """Applies several encoders, each to the output of the previous one.

    Args:
        encoders: in order; each is built for the output dimension of the previous one.
    """

    def __init__(self, input_dim: Local[int], encoders: list[Lazy[Encoder]]) -> None:
        super().__init__()
        if not encoders:
            raise ValueError("encoders is empty; name at least one, such as 'pass_through'")
        self.input_dim = self.output_dim = input_dim
        self.encoders = nn.ModuleList()
        for lazy in encoders:
            encoder = lazy.build(input_dim=self.output_dim)
            self.encoders.append(encoder)
            self.output_dim = encoder.output_dim

    def forward(
        self,
        inputs: Float[Tensor, "batch tokens input_dim"],
        mask: Bool[Tensor, "batch tokens"],
    ) -> Float[Tensor, "batch tokens output_dim"]:
        for encoder in self.encoders:
            inputs = encoder(inputs, mask)
        return inputs
