"""The surprisal of words under a causal transformer: sentences in, bits out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import log, nan
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from elmo_framework.data.sentences import longest_first, padded_batches
from elmo_framework.errors import DataError
from elmo_framework.kernels.product import Precision
from elmo_framework.layers.surprisal import SentenceScore
from elmo_framework.layers.transformer_files import read_language_model, read_tokenizer
from elmo_framework.layers.transformer_source import max_length, padded
from elmo_framework.layers.word_pieces import Pieces, special_tokens, tokenize
from elmo_framework.nn.overlapping_windows import windows

_LOGITS_AT_ONCE = 1 << 26
"""Logits of a batch: 256 MiB of float32."""


class _Row(NamedTuple):
    """A window of a sentence.

    Attributes:
        ids: the context that begins each window, the pieces, and the end if it is predicted.
        first: the position of the first prediction that is used.
    """

    ids: list[int]
    first: int


@final
class CausalTransformer:
    """Gives the surprisals of words: the sums of those of their pieces, forward only.

    Each sentence is read alone, after the special tokens that the tokenizer adds before it, or
    after the token that begins a text. Its end is predicted where the tokenizer adds a token there.
    A sentence that is longer than the model takes is read in windows, where each prediction has
    half a window of context or more.

    Args:
        folder: of the transformer.
        device: computes the surprisals.
        precision: of the layers: `float32` or `bfloat16`.

    Raises:
        DataError: it predicts no next piece, or a file is missing or damaged.
    """

    def __init__(
        self, folder: Path, device: torch.device, precision: Precision = "float32"
    ) -> None:
        self._tokenizer, self._device = read_tokenizer(folder), device
        dtype = torch.bfloat16 if precision == "bfloat16" else torch.float32
        self._model: nn.Module = read_language_model(folder).to(device, dtype)
        prefix, self._suffix = special_tokens(self._tokenizer)
        begin = self._tokenizer.bos_token_id
        self._context = prefix or ([] if begin is None else [begin])
        if not self._context:
            raise DataError("the tokenizer has no token that begins a text", path=folder)
        config: Any = self._model.config
        self._num_pieces = int(config.vocab_size)
        num_special = len(self._context) + len(self._suffix)
        self._window = max_length(self._model, self._tokenizer) - num_special
        self._require_causal(folder)

    def __deepcopy__(self, memo: dict[int, Any]) -> CausalTransformer:
        """Return the same model, as its weights do not change."""
        return self

    def score(
        self, sentences: Sequence[Sequence[str]], *, max_tokens: int = 4096
    ) -> list[SentenceScore]:
        """Return the surprisals of sentences; the backward direction is NaN.

        Args:
            sentences: the words of each.
            max_tokens: the largest number of pieces of a batch, padding counted.

        Raises:
            ValueError: `max_tokens` is not above 0.
        """
        pieces = tokenize(self._tokenizer, sentences)
        rows = [(at, row) for at, each in enumerate(pieces) for row in self._rows(each.ids)]
        bits: list[list[NDArray[np.float64]]] = [[] for _ in sentences]
        lengths = [len(row.ids) for _, row in rows]
        order = longest_first(range(len(rows)), lengths)
        limit = min(max_tokens, max(1, _LOGITS_AT_ONCE // self._num_pieces))
        computed = dict[int, NDArray[np.float64]]()
        for batch in padded_batches(order, lengths.__getitem__, max_tokens=limit):
            values = self._bits([rows[index][1].ids for index in batch]).cpu().double().numpy()
            for row, index in enumerate(batch):
                first = rows[index][1].first
                computed[index] = values[row, first - 1 : lengths[index] - 1]
        for index, (at, _) in enumerate(rows):
            bits[at].append(computed[index])
        return [
            self._scored(words, each, np.concatenate(own or [np.zeros(0)]))
            for words, each, own in zip(sentences, pieces, bits, strict=True)
        ]

    def _rows(self, ids: Sequence[int]) -> Iterator[_Row]:
        parts = list(windows(len(ids), self._window)) if ids else []
        for before, part in pairwise([None, *parts]):
            assert part is not None
            # Not the middle of the overlap: the next window has less context on the left.
            first = 0 if before is None else before.end - part.start
            end = self._suffix[:1] if part.end == len(ids) else []
            row = [*self._context, *ids[part.start : part.end], *end]
            yield _Row(row, len(self._context) + first)

    def _bits(self, rows: Sequence[Sequence[int]]) -> Tensor:
        ids, mask = padded(rows, 0, self._device)
        with torch.no_grad():
            logits = self._model(input_ids=ids, attention_mask=mask).logits[:, :-1].float()
        # "rows pieces", of each piece after the first
        nats = functional.cross_entropy(logits.transpose(1, 2), ids[:, 1:], reduction="none")
        return nats / log(2)

    def _scored(
        self, words: Sequence[str], pieces: Pieces, bits: NDArray[np.float64]
    ) -> SentenceScore:
        num_pieces, unknown = len(pieces.ids), self._tokenizer.unk_token_id
        forward = np.zeros(len(words))
        np.add.at(forward, pieces.word_ids, bits[:num_pieces])
        forward[pieces.counts(len(words)) == 0] = nan
        is_unknown = np.zeros(len(words), dtype=bool)
        is_unknown[[word for id, word in zip(*pieces, strict=True) if id == unknown]] = True
        end = float(bits[num_pieces]) if len(bits) > num_pieces else nan
        return SentenceScore(forward, np.full(len(words), nan), is_unknown, end=end, begin=nan)

    def _require_causal(self, folder: Path) -> None:
        """Refuse a model whose predictions depend on what follows."""
        first = self._context[0]
        ids = torch.tensor([[first, first], [first, (first + 1) % self._num_pieces]])
        with torch.no_grad():
            one, other = self._model(input_ids=ids.to(self._device)).logits[:, 0]
        if not torch.allclose(one, other, atol=1e-4, rtol=1e-4):
            message = "this transformer reads both ways; its predictions are no surprisals"
            raise DataError(message, path=folder)
