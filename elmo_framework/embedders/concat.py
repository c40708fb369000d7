"""Concatenate the vectors of a second embedder.

ELMo may be added to the input of an encoder or to its output (section 3.3).
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from elmo_framework.data.text import TextBatch
from elmo_framework.embedders.token_embedder import TokenEmbedder


def joined_dim(dim: int, embedder: TokenEmbedder | None) -> int:
    """Return the width of what `concatenate` gives."""
    return dim + (0 if embedder is None else embedder.output_dim)


def concatenate(
    vectors: Float[Tensor, "batch tokens dim"], embedder: TokenEmbedder | None, text: TextBatch
) -> Float[Tensor, "batch tokens joined"]:
    """Put the vectors of an embedder, if there is one, behind others."""
    return vectors if embedder is None else torch.cat([vectors, embedder(text)], dim=2)
