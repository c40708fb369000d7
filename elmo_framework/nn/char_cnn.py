"""Convolutions over the characters of words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from math import sqrt
from typing import Any, Literal, TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from elmo_framework.kernels.backend import no_autocast, uses_cpu_code
from elmo_framework.kernels.character_maxima import CharacterTables, Convolution, has_tables
from elmo_framework.kernels.product import Precision
from elmo_framework.kernels.window_maxima import window_maxima
from elmo_framework.nn.feedforward import activate
from elmo_framework.nn.part import TensorPart

CharCnnActivation: TypeAlias = Literal["relu", "tanh"]

# Small enough that the output of the widest convolution fits into the CPU's cache, and that the
# words of a group have similar lengths.
_WORDS_AT_ONCE = 64


class CharCnn(TensorPart):
    """Character embeddings and convolutions over them, each max-pooled over its positions.

    x_k = f(max_t (W_k * E)_t + b_k), and x = [x_1; ...; x_K], where E has the vectors of the
    word's characters and * is a convolution without padding (section 3.1 of the paper; Kim et
    al. 2015).

    Id 0 has no row in the table: it is a vector of zeros.

    Args:
        num_characters: number of ids, 0 included; the last one is the padding of a word.
        embedding_dim: dimension of a character vector.
        filters: width and number of filters of each convolution.
        activation: f; `relu` or `tanh`.
    """

    _frozen: Callable[[], CharacterTables | None] | None = None

    def __init__(
        self,
        num_characters: int,
        embedding_dim: int,
        filters: Sequence[tuple[int, int]],
        activation: CharCnnActivation = "relu",
    ) -> None:
        super().__init__()
        self.output_dim = sum(num_filters for _, num_filters in filters)
        self._padding_id = num_characters - 1
        self.activation: CharCnnActivation = activation
        self.table = nn.Parameter(torch.empty(num_characters - 1, embedding_dim).uniform_(-1, 1))
        convolutions = [
            nn.Conv1d(embedding_dim, num_filters, width) for width, num_filters in filters
        ]
        for convolution in convolutions:
            if activation == "relu":
                nn.init.uniform_(convolution.weight, -0.05, 0.05)
            else:
                fan_in = embedding_dim * convolution.kernel_size[0]
                nn.init.normal_(convolution.weight, std=sqrt(1 / fan_in))
            assert convolution.bias is not None
            nn.init.zeros_(convolution.bias)
        self.convolutions = nn.ModuleList(convolutions)

    def freeze(self, precision: Precision) -> None:
        self._frozen = cache(self._tables)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the tables, which refer to memory."""
        return {**self.__dict__, "_frozen": None}

    @torch.no_grad()
    def _tables(self) -> CharacterTables | None:
        """Return tables for compiled code; None without it."""
        if not has_tables(self.table):
            return None
        convolutions = []
        for each in self.convolutions:
            assert isinstance(each, nn.Conv1d)
            assert each.bias is not None
            convolutions.append(Convolution(each.weight, each.bias))
        with no_autocast(self.table):
            return CharacterTables(self._vectors(), convolutions, self._padding_id)

    def _vectors(self) -> Float[Tensor, "ids dim"]:
        return functional.pad(self.table, (0, 0, 1, 0))

    def forward(self, ids: Int[Tensor, "words characters"]) -> Float[Tensor, "words filters"]:
        if self._frozen is not None and not torch.is_grad_enabled() and uses_cpu_code(ids):
            tables = self._frozen()
            if tables is not None:
                return activate(tables.maxima(ids), self.activation)
        table = self._vectors()
        if uses_cpu_code(ids):
            maxima = self._maxima_by_length(ids, table)
        else:  # Reading the lengths would synchronize with the device.
            maxima = self._maxima(functional.embedding(ids, table), ids.shape[1])
        return activate(maxima, self.activation)

    def _maxima_by_length(
        self, ids: Int[Tensor, "words characters"], table: Float[Tensor, "ids dim"]
    ) -> Float[Tensor, "words filters"]:
        ends = torch.arange(1, ids.shape[1] + 1, device=ids.device)
        is_character = (ids != 0) & (ids != self._padding_id)
        lengths, order = torch.where(is_character, ends, 0).amax(dim=1).sort(stable=True)
        parts = zip(*(torch.split(t, _WORDS_AT_ONCE) for t in (ids[order], lengths)), strict=True)
        maxima = [
            self._maxima(functional.embedding(part, table), int(longest[-1:].sum()))
            for part, longest in parts
        ]
        return functional.embedding(torch.argsort(order), torch.cat(maxima))

    def _maxima(
        self, characters: Float[Tensor, "words characters dim"], longest: int
    ) -> Float[Tensor, "words filters"]:
        """Convolve words that end within `longest` characters.

        All windows that contain only padding have the same value, so one of them is enough.
        """
        maxima, biases = [], []
        for convolution in self.convolutions:
            assert isinstance(convolution, nn.Conv1d)
            assert convolution.bias is not None
            inputs = characters[:, : longest + convolution.kernel_size[0]]
            maxima.append(window_maxima(inputs, convolution.weight))
            biases.append(convolution.bias)
        return torch.cat(maxima, dim=1) + torch.cat(biases)
