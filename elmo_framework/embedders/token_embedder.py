"""The family of token embedders."""

from __future__ import annotations

from abc import ABC, abstractmethod

from jaxtyping import Float
from torch import Tensor

from elmo_framework.config.registry import Registrable
from elmo_framework.data.text import TextBatch
from elmo_framework.model.part import Part


class TokenEmbedder(Part, Registrable, ABC):
    """Gives each word of a batch a vector.

    Attributes:
        output_dim: the width of the vectors.
    """

    output_dim: int

    @abstractmethod
    def forward(self, text: TextBatch) -> Float[Tensor, "batch tokens dim"]:
        """Embed words; vectors at padding are zero."""
