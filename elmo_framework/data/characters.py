"""Convert words to byte ids, as character-based biLMs require."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Int64
from numpy.typing import NDArray

from elmo_framework.data.text import Indexer, SubwordIndexer
from elmo_framework.data.vocabulary import Vocabulary

BEGIN_SENTENCE, END_SENTENCE = "<S>", "</S>"
"""The words that mark the boundaries of a sentence, wherever they occur."""

PADDING_ID = 0
"""Fills the row of a padding word; byte b has the id b + 1."""

BEGIN_SENTENCE_ID, END_SENTENCE_ID, BEGIN_WORD_ID, END_WORD_ID, IN_WORD_PADDING_ID = range(257, 262)

NUM_CHARACTERS = 262
"""The ids are 0 to 261; those of words start at 1."""

_BOUNDARIES = {BEGIN_SENTENCE: BEGIN_SENTENCE_ID, END_SENTENCE: END_SENTENCE_ID}


@final
@dataclass(frozen=True)
class ElmoCharacterIndexer(SubwordIndexer):
    """Converts each word to a row of ids: a begin mark, its UTF-8 bytes, an end mark, padding.

    A word of more than `max_characters - 2` bytes is truncated, but keeps the end mark.

    Attributes:
        max_characters: the length of a row.
    """

    max_characters: int = 50

    def __post_init__(self) -> None:
        if self.max_characters < 3:
            raise ValueError(
                f"max_characters is {self.max_characters}; allowed: 3 or more, "
                "for the two marks of a word and one byte between them"
            )

    @property
    def key(self) -> str:
        return f"elmo_characters_{self.max_characters}"

    def ids(self, words: Sequence[str]) -> NDArray[np.int64]:
        """Return "tokens characters"."""
        width = self.max_characters
        inner = [_inner_bytes(word)[: width - 2] for word in words]
        lengths = np.fromiter(map(len, inner), np.int64, len(inner))
        rows = np.full((len(inner), width), IN_WORD_PADDING_ID, np.int64)
        rows[:, 0] = BEGIN_WORD_ID
        is_inner = np.arange(width - 1) < lengths[:, None]
        rows[:, 1:][is_inner] = np.frombuffer(b"".join(inner), np.uint8).astype(np.int64) + 1
        rows[np.arange(len(inner)), lengths + 1] = END_WORD_ID
        for index, word in enumerate(words):
            if word in _BOUNDARIES:
                rows[index, 1] = _BOUNDARIES[word]
        return rows

    def boundaries(self, width: int) -> NDArray[np.int64]:
        return np.stack([character_row(word, width) for word in (BEGIN_SENTENCE, END_SENTENCE)])


def character_row(word: str, max_characters: int = 50) -> NDArray[np.int64]:
    """Return the row of one word; `<S>` and `</S>` are the boundaries of a sentence."""
    row: NDArray[np.int64] = ElmoCharacterIndexer(max_characters).ids([word])[0]
    return row


def _inner_bytes(word: str) -> bytes:
    """Return the bytes of a word; a boundary has one, whose id is replaced."""
    if word in _BOUNDARIES:
        return b"\0"
    # A lone surrogate has no bytes in UTF-8; bilm-tf drops it as well.
    return word.encode(errors="ignore")


_BEGIN, _END = 257, 258
NUM_BYTE_IDS = 259
"""Padding, the 256 bytes, and the marks at the begin and the end of a word."""


@dataclass(frozen=True, slots=True)
class ByteIndexer(Indexer):
    """Converts each word to its UTF-8 bytes, each plus 1, between two marks.

    Attributes:
        max_characters: maximum number of ids of a word; longer ones are truncated.
    """

    max_characters: int

    @property
    def key(self) -> str:
        return f"bytes:max_characters={self.max_characters}"

    def ids(self, words: Sequence[str]) -> Int64[np.ndarray, "tokens characters"]:
        """Return the ids, as wide as the longest word."""
        max_bytes = self.max_characters - 2
        spelled = [word.encode(errors="ignore")[:max_bytes] for word in words]
        rows = np.zeros((len(words), 2 + max(map(len, spelled), default=0)), dtype=np.int64)
        for row, spelling in zip(rows, spelled, strict=True):
            row[: len(spelling) + 2] = [_BEGIN, *(byte + 1 for byte in spelling), _END]
        return rows


@dataclass(frozen=True, slots=True)
class CharacterIndexer(Indexer):
    """Converts each word to the ids of its characters, without marks at its ends.

    Attributes:
        vocabulary: of characters; 0 is padding.
        max_characters: maximum number of ids of a word; longer ones are truncated.
    """

    vocabulary: Vocabulary
    max_characters: int

    @property
    def key(self) -> str:
        return f"characters:max_characters={self.max_characters}"

    def ids(self, words: Sequence[str]) -> Int64[np.ndarray, "tokens characters"]:
        """Return the ids, as wide as the longest word."""
        spelled = [self.vocabulary.ids(word[: self.max_characters]) for word in words]
        rows = np.zeros((len(words), max([1, *map(len, spelled)])), dtype=np.int64)
        for row, spelling in zip(rows, spelled, strict=True):
            row[: len(spelling)] = spelling
        return rows
