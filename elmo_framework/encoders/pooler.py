"""Base class for poolers."""

from __future__ import annotations

from abc import ABC, abstractmethod

from jaxtyping import Bool, Float
from torch import Tensor

from elmo_framework.config.registry import Registrable
from elmo_framework.model.part import Part


class Pooler(Part, Registrable, ABC):
    """Reduces a sequence to one vector; padding has no effect, an empty sequence gives zeros.

    A member takes `input_dim: Local[int]`, and may take `embedding_dim`, AllenNLP's key.

    Args:
        input_dim: dimension of the input vectors.
        embedding_dim: if set, must equal the dimension of the input.

    Attributes:
        output_dim: dimension of the output vector.
    """

    output_dim: int

    @abstractmethod
    def forward(
        self,
        inputs: Float[Tensor, "batch tokens input_dim"],
        mask: Bool[Tensor, "batch tokens"],
    ) -> Float[Tensor, "batch output_dim"]:
        """Pool sequences."""
