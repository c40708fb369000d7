"""The family of encoders, and those without weights."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TypeAlias, final

from jaxtyping import Bool, Float
from torch import Tensor, nn

from elmo_framework.config.registry import Registrable
from elmo_framework.config.types import Lazy, Local, require_size
from elmo_framework.model.part import Part

Inputs: TypeAlias = Float[Tensor, "batch tokens input_dim"]
Encoded: TypeAlias = Float[Tensor, "batch tokens output_dim"]
Mask: TypeAlias = Bool[Tensor, "batch tokens"]


class Encoder(Part, Registrable, ABC):
    """Encodes sequences; padding has no effect, and vectors at padding are zero.

    A member takes `input_dim: Local[int]`, and may take `input_size`, AllenNLP's key.

    Args:
        input_dim: dimension of the input vectors.
        input_size: if set, must equal the dimension of the input.

    Attributes:
        output_dim: dimension of the output vectors.
    """

    input_dim: int
    output_dim: int

    @abstractmethod
    def forward(self, inputs: Inputs, mask: Mask) -> Encoded:
        """Encode sequences."""


@final
@Encoder.register("pass_through")
class PassThroughEncoder(Encoder):
    """Returns its input, with padding set to zero."""

    def __init__(self, input_dim: Local[int], input_size: int | None = None) -> None:
        super().__init__()
        require_size("input_size", input_size, inferred=input_dim)
        self.input_dim = self.output_dim = input_dim

    def forward(self, inputs: Inputs, mask: Mask) -> Encoded:
        return inputs * mask[:, :, None]


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

    def forward(self, inputs: Inputs, mask: Mask) -> Encoded:
        for encoder in self.encoders:
            inputs = encoder(inputs, mask)
        return inputs
