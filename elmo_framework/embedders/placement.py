"""A second embedder behind the first encoder of a head: ELMo at the output (section 3.3)."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from elmo_framework.data.text import TextBatch
from elmo_framework.embedders.token_embedder import TokenEmbedder


def joined_dim(encoded_dim: int, output_embedder: TokenEmbedder | None) -> int:
    """Return the width of what `joined` gives."""
    return encoded_dim + (0 if output_embedder is None else output_embedder.output_dim)


def joined(
    encoded: Float[Tensor, "batch tokens encoded"],
    output_embedder: TokenEmbedder | None,
    text: TextBatch,
) -> Float[Tensor, "batch tokens dim"]:
    """Put the vectors of an embedder, if there is one, behind those of an encoder."""
    if output_embedder is None:
        return encoded
    return torch.cat([encoded, output_embedder(text)], dim=2)
