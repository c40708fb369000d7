"""Words that training has not seen, and that a file of vectors has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Float32, Int, UInt8
from torch import Tensor, nn
from torch.nn import functional


class OovVectors(nn.Module):
    """Vectors that are never trained; they are kept with the weights, the words too.

    Args:
        dim: the width of the vectors.
        vectors: of the words; an empty one, or one with a line feed in it, is left out.

    Attributes:
        rows: of the words, from 1.
        vectors: a row a word; row 0 is zero.
        spelling: the words in UTF-8, between line feeds.
    """

    vectors: Float[Tensor, "rows dim"]
    spelling: UInt8[Tensor, " bytes"]

    def __init__(self, dim: int, vectors: Mapping[str, Float32[np.ndarray, " dim"]]) -> None:
        super().__init__()
        vectors = {word: vector for word, vector in vectors.items() if word and "\n" not in word}
        self.rows = _numbered(vectors)
        table = np.zeros((1 + len(vectors), dim), dtype=np.float32)
        for row, vector in enumerate(vectors.values(), start=1):
            table[row] = vector
        self.register_buffer("vectors", torch.from_numpy(table))
        spelling = np.frombuffer("\n".join(vectors).encode(), dtype=np.uint8)
        self.register_buffer("spelling", torch.from_numpy(spelling.copy()))

    def forward(self, rows: Int[Tensor, "batch tokens"]) -> Float[Tensor, "batch tokens dim"]:
        return functional.embedding(rows, self.vectors)

    def _load_from_state_dict(
        self, state_dict: Mapping[str, Any], prefix: str, *arguments: Any
    ) -> None:
        """Take over as many words as were kept."""
        spelling = state_dict.get(f"{prefix}spelling")
        vectors = state_dict.get(f"{prefix}vectors")
        if spelling is not None and vectors is not None:
            self.vectors = self.vectors.new_zeros(len(vectors), self.vectors.shape[1])
            self.spelling = self.spelling.new_zeros(len(spelling))
            words = bytes(spelling.cpu().numpy()).decode().split("\n") if len(spelling) else []
            self.rows.clear()  # in place, as indexers hold it
            self.rows.update(_numbered(words))
        super()._load_from_state_dict(state_dict, prefix, *arguments)


def _numbered(words: Iterable[str]) -> dict[str, int]:
    return {word: row for row, word in enumerate(words, start=1)}
