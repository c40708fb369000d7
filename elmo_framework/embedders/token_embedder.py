"""The family of token embedders."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor, nn

from elmo_framework.config.registry import Registrable
from elmo_framework.data.text import Indexer, TextBatch


class TokenEmbedder(nn.Module, Registrable, ABC):
    """Gives each word of a batch a vector.

    Attributes:
        output_dim: the width of the vectors.
        indexers: what turns words into the ids that it reads from `TextBatch.ids`.
    """

    output_dim: int
    indexers: Sequence[Indexer]

    @abstractmethod
    def forward(self, text: TextBatch) -> Float[Tensor, "batch tokens dim"]:
        """Embed words; vectors at padding are zero."""
