"""Token embedders, and all the embedders of a model as one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from elmo_framework.config.registry import Registrable
from elmo_framework.data.text import Indexer, TextBatch
from elmo_framework.model.part import Part


class TokenEmbedder(Part, Registrable, ABC):
    """Gives each word of a batch a vector.

    Attributes:
        output_dim: the dimension of the vectors.
    """

    output_dim: int

    @abstractmethod
    def forward(self, text: TextBatch) -> Float[Tensor, "batch tokens dim"]:
        """Embed words; vectors at padding are zero."""


@final
class TextEmbedder(Part, Registrable):
    """Gives each word the vectors of several embedders, one after the other.

    Attributes:
        output_dim: the dimension of all of them together.
        indexers: turn words into the ids that the embedders read, each once.

    Args:
        token_embedders: by any name; their vectors are in the alphabetical order of the names.
    """

    def __init__(self, token_embedders: dict[str, TokenEmbedder]) -> None:
        super().__init__()
        if not token_embedders:
            raise ValueError("token_embedders is empty; name one at least")
        names = sorted(token_embedders)
        for name in names:
            if not name or "." in name or hasattr(nn.ModuleDict(), name):
                raise ValueError(f"an embedder cannot be called {name!r}; choose another name")
        indexers = (indexer for name in names for indexer in token_embedders[name].indexers)
        self.indexers: Sequence[Indexer] = list({item.key: item for item in indexers}.values())
        self.token_embedders = nn.ModuleDict({name: token_embedders[name] for name in names})
        self.output_dim = sum(embedder.output_dim for embedder in token_embedders.values())
        self._carries_state = any_carries_state(*token_embedders.values())

    @property
    def carries_state(self) -> bool:
        return self._carries_state

    def forward(self, text: TextBatch) -> Float[Tensor, "batch tokens dim"]:
        return torch.cat([embedder(text) for embedder in self.token_embedders.values()], dim=2)


def joined_dim(dim: int, embedder: TokenEmbedder | None) -> int:
    """Return the dimension of what `concatenate` gives."""
    return dim + (0 if embedder is None else embedder.output_dim)


def any_carries_state(*embedders: Part | None) -> bool:
    """Return whether one of the embedders that exist continues from batch to batch."""
    return any(each is not None and each.carries_state for each in embedders)


def concatenate(
    vectors: Float[Tensor, "batch tokens dim"], embedder: TokenEmbedder | None, text: TextBatch
) -> Float[Tensor, "batch tokens joined"]:
    """Append the vectors of an embedder, if there is one, to others.

    ELMo may be added to the input of an encoder or to its output (section 3.3).
    """
    return vectors if embedder is None else torch.cat([vectors, embedder(text)], dim=2)
