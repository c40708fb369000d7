"""Base class for encoders."""

from __future__ import annotations

from abc import ABC, abstractmethod

from jaxtyping import Bool, Float
from torch import Tensor

from elmo_framework.config.registry import Registrable
from elmo_framework.model.part import Part


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
    def forward(
        self,
        inputs: Float[Tensor, "batch tokens input_dim"],
        mask: Bool[Tensor, "batch tokens"],
    ) -> Float[Tensor, "batch tokens output_dim"]:
        """Encode sequences."""
