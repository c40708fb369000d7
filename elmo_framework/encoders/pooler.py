"""The family of poolers: a sequence of vectors to one vector."""

from __future__ import annotations

from abc import ABC, abstractmethod

from jaxtyping import Bool, Float
from torch import Tensor

from elmo_framework.config.registry import Registrable
from elmo_framework.model.part import Part


class Pooler(Part, Registrable, ABC):
    """Makes one vector of a sequence; padding changes nothing, an empty sequence gives zeros.

    A member takes `input_dim: Local[int]`, and may take `embedding_dim`, AllenNLP's key.

    Args:
        input_dim: the width of the vectors that it will be given.
        embedding_dim: checked against the width that arrives, when it is stated.

    Attributes:
        output_dim: the width that it gives.
    """

    output_dim: int

    @abstractmethod
    def forward(
        self,
        inputs: Float[Tensor, "batch tokens input_dim"],
        mask: Bool[Tensor, "batch tokens"],
    ) -> Float[Tensor, "batch output_dim"]:
        """Pool sequences."""
