"""Cache of the vectors that a token encoder gives to words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, count
from typing import Any, TypeAlias, final

import numpy as np
import torch
from jaxtyping import Float, Int
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

_Key: TypeAlias = str | bytes
"""A word, or its ids as 32-bit numbers."""


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
        self._rows: dict[_Key, int] = {}
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

    def of_ids(
        self, ids: Int[Tensor, "batch steps characters"]
    ) -> Float[Tensor, "batch steps dim"]:
        """Return the vectors of words by the ids of their characters, on the CPU; zero at padding.

        Args:
            ids: of the encoder's indexer, with boundaries; 0 at padding.
        """
        numbers = ids.int().numpy()
        content, size = numbers.tobytes(), ids.shape[2] * numbers.itemsize
        keys = [content[at : at + size] for at in range(0, len(content), size)]
        padding = bytes(size)
        self.learn((), ids.device)  # the table exists, even if all is padding
        self._learn([key for key in dict.fromkeys(keys) if key != padding], ids.device)
        rows = [_PADDING if key == padding else self._rows[key] for key in keys]
        indices = torch.tensor(rows, dtype=torch.long).view(ids.shape[:2])
        return functional.embedding(indices, self._table)

    def vectors(self, words: Sequence[str], device: torch.device) -> Float[Tensor, "words dim"]:
        """Return the vectors of words; `<S>` and `</S>` are those of the boundaries."""
        self.learn(words, device)
        indices = torch.tensor([self._rows[word] for word in words], device=device)
        return functional.embedding(indices, self._table)

    def learn(self, words: Iterable[str], device: torch.device) -> None:
        """Compute the vectors of words that are not in the table yet."""
        self._learn(list(dict.fromkeys((BEGIN_SENTENCE, END_SENTENCE, *words))), device)

    def _learn(self, keys: Sequence[_Key], device: torch.device) -> None:
        if self._table.device != device:
            self._rows, self._table = {}, torch.empty(0, device=device)
        missing = [key for key in keys if key not in self._rows]
        if len(self._rows) + len(missing) >= len(self._table):
            self._rows, missing = {}, list(keys)
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

    def _add(self, keys: Sequence[_Key], device: torch.device) -> None:
        first = len(self._rows) + 1
        ordered = sorted(keys, key=len)
        parts = [ordered[at : at + _WORDS_AT_ONCE] for at in range(0, len(keys), _WORDS_AT_ONCE)]
        vectors = torch.cat([self._encoder(self._ids(part).to(device)) for part in parts])
        if first + len(keys) > len(self._table):
            self._table = self._empty_table(vectors, at_least=first + len(keys))
        self._table[first : first + len(keys)] = vectors
        self._rows.update(zip(ordered, count(first)))

    def _ids(self, keys: Sequence[_Key]) -> Tensor:
        """Return the ids of words, or of rows that are equally wide: "words characters"."""
        words = [key for key in keys if isinstance(key, str)]
        if words:
            return torch.from_numpy(self._encoder.indexer.ids(words))
        content = b"".join(key for key in keys if isinstance(key, bytes))
        rows = np.frombuffer(content, np.int32).reshape(len(keys), -1)
        return torch.from_numpy(rows.astype(np.int64))

    def _empty_table(self, vectors: Float[Tensor, "words dim"], *, at_least: int) -> Tensor:
        row_bytes = vectors.shape[1] * vectors.element_size()
        return vectors.new_zeros(max(self._max_bytes // row_bytes, at_least), vectors.shape[1])
