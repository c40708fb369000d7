"""All the embedders of a model as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from elmo_framework.config.registry import Registrable
from elmo_framework.data.text import Indexer, TextBatch
from elmo_framework.embedders.token_embedder import TokenEmbedder
from elmo_framework.model.part import Part


@final
class TextEmbedder(Part, Registrable):
    """Gives each word the vectors of several embedders, one after the other.

    Attributes:
        output_dim: the width of them all together.
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
            _require_name(name)
        indexers = (indexer for name in names for indexer in token_embedders[name].indexers)
        self.indexers: Sequence[Indexer] = list({item.key: item for item in indexers}.values())
        self.token_embedders = nn.ModuleDict({name: token_embedders[name] for name in names})
        self.output_dim = sum(embedder.output_dim for embedder in token_embedders.values())

    def forward(self, text: TextBatch) -> Float[Tensor, "batch tokens dim"]:
        """Embed words; vectors at padding are zero."""
        return torch.cat([embedder(text) for embedder in self.token_embedders.values()], dim=2)


def _require_name(name: str) -> None:
    if not name or "." in name or hasattr(nn.ModuleDict(), name):
        raise ValueError(f"an embedder cannot be called {name!r}; choose another name")
