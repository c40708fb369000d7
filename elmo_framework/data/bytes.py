"""Words as the bytes that spell them, for character encoders other than ELMo's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int64

from elmo_framework.data.text import Indexer

_BEGIN, _END = 257, 258
NUM_BYTE_IDS = 259
"""Padding, the 256 bytes, and the marks at the begin and the end of a word."""


@dataclass(frozen=True, slots=True)
class ByteIndexer(Indexer):
    """Turns each word into its UTF-8 bytes, each plus 1, between two marks.

    Attributes:
        max_characters: how many ids a word has at most; longer ones lose their last bytes.
    """

    max_characters: int

    @property
    def key(self) -> str:
        """The name of the ids, the same for the same limit."""
        return f"bytes:max_characters={self.max_characters}"

    def ids(self, words: Sequence[str]) -> Int64[np.ndarray, "tokens characters"]:
        """Return the ids, as wide as the longest word."""
        kept = self.max_characters - 2
        spelled = [word.encode(errors="ignore")[:kept] for word in words]
        rows = np.zeros((len(words), 2 + max(map(len, spelled), default=0)), dtype=np.int64)
        for row, spelling in zip(rows, spelled, strict=True):
            row[: len(spelling) + 2] = [_BEGIN, *(byte + 1 for byte in spelling), _END]
        return rows
