"""One vector for each word from the ids of its pieces or bytes."""

from __future__ import annotations

from typing import Literal, TypeAlias, assert_never, final

from jaxtyping import Float, Int
from torch import Tensor, nn

from elmo_framework.kernels.backend import uses_cpu_code
from elmo_framework.nn.masking import masked_max, masked_mean
from elmo_framework.nn.recurrent import read_rows

PoolingMode: TypeAlias = Literal["mean", "max", "first", "last", "gru"]
"""The mean or the largest value of each dimension, the vector of one piece, or the last states of
a GRU in both directions, which alone depends on the order of the pieces."""


@final
class SubwordPooling(nn.Module):
    """Pools the vectors of the pieces of each word.

    Args:
        num_ids: number of ids; 0 is padding, which follows the pieces of a word.
        dim: dimension of the vector of a piece.
        mode: how the vectors become one.
        cell_size: dimension of the state of a GRU in each direction; not read in other modes.
    """

    def __init__(self, num_ids: int, dim: int, mode: PoolingMode, cell_size: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(num_ids, dim, padding_idx=0)
        self.gru: nn.GRU | None = None
        self.output_dim = dim
        self._mode: PoolingMode = mode
        if mode == "gru":
            self.gru = nn.GRU(dim, cell_size, batch_first=True, bidirectional=True)
            self.output_dim = 2 * cell_size

    def forward(self, ids: Int[Tensor, "words pieces"]) -> Float[Tensor, "words dim"]:
        mask = ids > 0
        if uses_cpu_code(ids) and ids.numel():
            # Most words are much shorter than a row. A GPU would have to wait for the length.
            longest = max(1, int(mask.sum(dim=1).max()))
            ids, mask = ids[:, :longest], mask[:, :longest]
        vectors: Tensor = self.embedding(ids)
        match self._mode:
            case "mean":
                return masked_mean(vectors, mask)
            case "max":
                return masked_max(vectors, mask)
            case "first":
                return vectors[:, 0]
            case "last":
                last = (mask.sum(dim=1) - 1).clamp(min=0)
                return vectors.take_along_dim(last[:, None, None], dim=1).squeeze(1)
            case "gru":
                assert self.gru is not None
                return read_rows(self.gru, vectors, mask)[1]
        assert_never(self._mode)
