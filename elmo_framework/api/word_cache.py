"""The context-independent vectors of known words, computed once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from elmo_framework.api.arguments import require_words
from elmo_framework.bilm.bilm import BiLm
from elmo_framework.data.characters import BEGIN_SENTENCE, END_SENTENCE

_CHUNK = 1024
_PADDING, _BEGIN, _END = range(3)
"""The first rows of the table; word i is in row i + 2, and word 0 is padding."""


@final
class WordCache:
    """Looks up the token encoder's vectors of the words of a vocabulary.

    Args:
        bilm: whose token encoder computes the vectors, once.
        words: the word of id i in place i. The first one is padding and is not read.
    """

    def __init__(self, bilm: BiLm, words: Sequence[str]) -> None:
        self._num_words = len(require_words(words, name="vocab_to_cache"))
        encoded = _encoded(bilm, [BEGIN_SENTENCE, END_SENTENCE, *words[1:]])
        self._table = torch.cat([encoded.new_zeros(1, encoded.shape[1]), encoded])

    def knows(self, word_ids: Int[Tensor, "batch tokens"]) -> bool:
        """Return whether all ids are of words in the cache."""
        return bool(((word_ids >= 0) & (word_ids < self._num_words)).all())

    def framed(
        self, word_ids: Int[Tensor, "batch tokens"]
    ) -> tuple[Float[Tensor, "batch tokens+2 dim"], Bool[Tensor, "batch tokens+2"]]:
        """Return the vectors of sentences and of their boundaries, and their mask."""
        self._table = self._table.to(word_ids.device)
        lengths = (word_ids > 0).sum(dim=1, keepdim=True)
        rows = functional.pad(torch.where(word_ids > 0, word_ids + _END, _PADDING), (1, 1))
        steps = torch.arange(rows.shape[1], device=rows.device)
        rows = torch.where((steps == 0) & (lengths > 0), _BEGIN, rows)
        rows = torch.where((steps == lengths + 1) & (lengths > 0), _END, rows)
        return functional.embedding(rows, self._table), rows != _PADDING


@torch.no_grad()
def _encoded(bilm: BiLm, words: Sequence[str]) -> Float[Tensor, "words dim"]:
    indexer, device = bilm.token_encoder.indexer, next(bilm.parameters()).device
    rows = torch.from_numpy(indexer.ids(words)).to(device)
    return torch.cat([bilm.encode(chunk[None])[0] for chunk in torch.split(rows, _CHUNK)])
