"""The family of encoders: a sequence of vectors to another."""

from __future__ import annotations

from abc import ABC, abstractmethod

from jaxtyping import Bool, Float
from torch import Tensor

from elmo_framework.config.registry import Registrable
from elmo_framework.model.part import Part


class Encoder(Part, Registrable, ABC):
    """Encodes sequences; padding changes nothing, and vectors at padding are zero.

    A member takes `input_dim: Local[int]`, and may take `input_size`, AllenNLP's key.

    Args:
        input_dim: the width of the vectors that it will be given.
        input_size: checked against the width that arrives, when it is stated.

    Attributes:
        output_dim: the width that it gives.
    """

    input_dim: int
    output_dim: int

    @abstractmethod
    def forward(
        self,
        inputs: Float[Tensor, "batch tokens input_dim"],
        mask: Bool[Tensor, "batch tokens"],
    ) -> Float[Tensor, "batch tokens output_dim"]:
        """Encode sequences."""
