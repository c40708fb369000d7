"""Cache of the vectors that a token encoder gives to words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, count
from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from elmo_framework.bilm.token_encoder import TokenEncoder
from elmo_framework.data.characters import BEGIN_SENTENCE, END_SENTENCE
from elmo_framework.data.text import TextBatch
from elmo_framework.kernels.backend import no_autocast

# Bounds the memory that encoding a batch of unknown words takes.
_WORDS_AT_ONCE = 1024

_PADDING = 0
"""The row of the table that stays zero."""


@final
class WordVectorCache:
    """A table of vectors by word, for a token encoder whose weights do not change.

    When it is full, it forgets everything; it grows beyond its bound only where the words of one
    batch alone do not fit.

    Args:
        encoder: computes the vectors; moved elsewhere, it starts an empty table.
        max_bytes: the bound of the table.
    """

    def __init__(self, encoder: TokenEncoder, max_bytes: int = 1 << 26) -> None:
        self._encoder, self._max_bytes = encoder, max_bytes
        self._rows: dict[str, int] = {}
        self._table = torch.empty(0)

    def framed(self, text: TextBatch) -> Float[Tensor, "batch steps dim"]:
        """Return the vectors of sentences between `<S>` and `</S>`; zero at padding."""
        sentences = [
            (BEGIN_SENTENCE, *words, END_SENTENCE) if words else () for words in text.words
        ]
        device, num_steps = text.mask.device, text.mask.shape[1] + 2
        self.learn(chain.from_iterable(sentences), device)
        rows = [
            [*(self._rows[word] for word in words), *[_PADDING] * (num_steps - len(words))]
            for words in sentences
        ]
        indices = torch.tensor(rows, dtype=torch.long, device=device).view(-1, num_steps)
        return functional.embedding(indices, self._table)

    def vectors(self, words: Sequence[str], device: torch.device) -> Float[Tensor, "words dim"]:
        """Return the vectors of words; `<S>` and `</S>` are those of the boundaries."""
        self.learn(words, device)
        indices = torch.tensor([self._rows[word] for word in words], device=device)
        return functional.embedding(indices, self._table)

    def learn(self, words: Iterable[str], device: torch.device) -> None:
        """Compute the vectors of words that are not in the table yet."""
        words = list(dict.fromkeys((BEGIN_SENTENCE, END_SENTENCE, *words)))
        if self._table.device != device:
            self._rows, self._table = {}, torch.empty(0, device=device)
        missing = [word for word in words if word not in self._rows]
        if len(self._rows) + len(missing) >= len(self._table):
            self._rows, missing = {}, words
        if missing:
            # What a caller asks for (bfloat16, no version counters) must not stay in the table.
            with torch.inference_mode(False), torch.no_grad(), no_autocast(device):
                self._add(missing, device)

    def __deepcopy__(self, memo: dict[int, Any]) -> WordVectorCache:
        """Return the same cache, as the encoder's weights do not change."""
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Return the content of a pickle: of the table, only the rows in use."""
        return {**self.__dict__, "_table": self._table[: len(self._rows) + 1].clone()}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)
        used = self._table
        if self._rows:
            self._table = self._empty_table(used, at_least=len(used))
            self._table[: len(used)] = used

    def clear(self) -> None:
        """Forget all words; what is computed then has the same bits whatever was read before."""
        self._rows = {}

    def _add(self, words: Sequence[str], device: torch.device) -> None:
        indexer, first = self._encoder.indexer, len(self._rows) + 1
        ordered = sorted(words, key=len)
        parts = [ordered[at : at + _WORDS_AT_ONCE] for at in range(0, len(words), _WORDS_AT_ONCE)]
        ids = [torch.from_numpy(indexer.ids(part)).to(device) for part in parts]
        vectors = torch.cat([self._encoder(part) for part in ids])
        if first + len(words) > len(self._table):
            self._table = self._empty_table(vectors, at_least=first + len(words))
        self._table[first : first + len(words)] = vectors
        self._rows.update(zip(ordered, count(first)))

    def _empty_table(self, vectors: Float[Tensor, "words dim"], *, at_least: int) -> Tensor:
        row_bytes = vectors.shape[1] * vectors.element_size()
        return vectors.new_zeros(max(self._max_bytes // row_bytes, at_least), vectors.shape[1])
