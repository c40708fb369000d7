"""The family of token encoders: one vector for each word, without context."""

from __future__ import annotations

from abc import ABC, abstractmethod

from jaxtyping import Float, Int
from torch import Tensor, nn

from elmo_framework.common.registry import Registrable
from elmo_framework.data.characters import ElmoCharacterIndexer


class TokenEncoder(nn.Module, Registrable, ABC):
    """Encodes each word by itself, from the bytes that spell it.

    Attributes:
        indexer: what turns words into the ids that `forward` takes.
        output_dim: the width of a word's vector.
    """

    indexer: ElmoCharacterIndexer
    output_dim: int

    @abstractmethod
    def forward(
        self, characters: Int[Tensor, "... tokens characters"]
    ) -> Float[Tensor, "... tokens dim"]:
        """Encode words; a word whose ids are all 0 is padding, and its vector is not read."""
