"""Convolutions over the characters of words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import sqrt
from typing import Literal, TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

Activation: TypeAlias = Literal["relu", "tanh"]

_ACTIVATIONS: Mapping[Activation, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "tanh": torch.tanh,
}

# Few enough that what the widest convolution gives stays in the cache of a processor.
_WORDS_AT_ONCE = 64


class CharCnn(nn.Module):
    """A table of characters and convolutions over it, each with a maximum over its positions.

    x_k = f(max_t (W_k * E)_t + b_k), and x = [x_1; ...; x_K], where E holds the vectors of the
    word's characters and * is a convolution without padding (section 3.1 of the paper; Kim et
    al. 2015).

    Id 0 has no row in the table: it is a vector of zeros.

    Args:
        num_characters: how many ids there are; the last one is what fills a row of ids up.
        embedding_dim: the width of a character's vector.
        filters: width and number of filters of each convolution.
        activation: f; `relu` or `tanh`.
    """

    def __init__(
        self,
        num_characters: int,
        embedding_dim: int,
        filters: Sequence[tuple[int, int]],
        activation: Activation = "relu",
    ) -> None:
        super().__init__()
        self.output_dim = sum(num_filters for _, num_filters in filters)
        self._padding_id = num_characters
        self._max_width = max(width for width, _ in filters)
        self._activation = _ACTIVATIONS[activation]
        self.table = nn.Parameter(torch.empty(num_characters, embedding_dim).uniform_(-1, 1))
        self.convolutions = nn.ModuleList(
            nn.Conv1d(embedding_dim, num_filters, width) for width, num_filters in filters
        )
        for convolution in self.convolutions:
            _initialize(convolution, activation)

    def forward(self, ids: Int[Tensor, "words characters"]) -> Float[Tensor, "words filters"]:
        """Encode words."""
        table = functional.pad(self.table, (0, 0, 1, 0))
        characters = functional.embedding(self._trimmed(ids), table).transpose(1, 2)
        parts = torch.split(characters, _WORDS_AT_ONCE)
        return self._activation(torch.cat([self._maxima(part) for part in parts]))

    def _maxima(
        self, characters: Float[Tensor, "words dim characters"]
    ) -> Float[Tensor, "words filters"]:
        found = [convolution(characters).amax(dim=2) for convolution in self.convolutions]
        return torch.cat(found, dim=1)

    def _trimmed(self, ids: Int[Tensor, "words characters"]) -> Int[Tensor, "words shorter"]:
        """Cut columns of padding that give a convolution what it has seen already.

        Every window that lies in the padding alone gives the same, so one of them is enough.
        """
        columns = ((ids != 0) & (ids != self._padding_id)).any(dim=0).nonzero()
        longest = int(columns.max()) + 1 if len(columns) else 0
        return ids[:, : longest + self._max_width]


def _initialize(convolution: nn.Module, activation: Activation) -> None:
    assert isinstance(convolution, nn.Conv1d)
    if activation == "relu":
        nn.init.uniform_(convolution.weight, -0.05, 0.05)
    else:
        fan_in = convolution.in_channels * convolution.kernel_size[0]
        nn.init.normal_(convolution.weight, std=sqrt(1 / fan_in))
    assert convolution.bias is not None
    nn.init.zeros_(convolution.bias)
