"""The table of distinct words of a corpus, and its files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from elmo_framework.corpus.manifest import Entry, EntryWriter
from elmo_framework.corpus.vocabulary_file import is_listable, vocabulary_text
from elmo_framework.data.characters import BEGIN_SENTENCE, END_SENTENCE, ElmoCharacterIndexer
from elmo_framework.data.pieces import (
    EXTRA,
    NUM_BYTES,
    PIECES_FILE,
    PieceIndexer,
    train_pieces,
)
from elmo_framework.errors import RunError
from elmo_framework.io.extras import import_extra

WORDS, VOCABULARY = "words.txt", "vocabulary.txt"
COUNTS, CHARACTERS = "counts.bin", "characters.bin"
COUNT, CHARACTER = np.dtype("<i8"), np.dtype("<u2")
INDEXER = ElmoCharacterIndexer()
"""Computes the character rows that are stored; other sizes are computed when a model needs them."""

LONGEST_WORD = INDEXER.max_characters - 2
"""The maximum number of bytes of a word that a biLM sees."""

BOUNDARIES = (BEGIN_SENTENCE, END_SENTENCE)
_WORDS_PER_BLOCK = 8192


@final
@dataclass(frozen=True)
class WordTable:
    """The distinct words of both parts: the boundaries of a sentence, then by falling frequency.

    Attributes:
        words: without duplicates.
        counts: of each word in the training part.
    """

    words: list[str]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, counts: Mapping[str, int]) -> WordTable:
        others = [pair for pair in counts.items() if pair[0] not in BOUNDARIES]
        others.sort(key=lambda pair: (-pair[1], pair[0]))
        words = [*BOUNDARIES, *(word for word, _ in others)]
        return cls(words, np.array([counts.get(word, 0) for word in words], COUNT))

    def frequent(self, *, min_count: int, max_size: int | None) -> list[str]:
        """Return the words except the special ones, by falling frequency."""
        pairs = zip(self.words, self.counts.tolist(), strict=True)
        words = [word for word, count in pairs if count >= min_count and is_listable(word)]
        return words[:max_size]

    def statistics(self) -> dict[str, Any]:
        """Return the numbers of truncated words and of boundaries in the text."""
        is_long = np.array([len(word.encode()) > LONGEST_WORD for word in self.words])
        return {
            "cut_words": {"distinct": int(is_long.sum()), "all": int(self.counts[is_long].sum())},
            "boundary_words": int(self.counts[: len(BOUNDARIES)].sum()),
        }

    def write(self, root: Path, vocabulary: Sequence[str]) -> list[Entry]:
        return [
            _written(root, WORDS, "".join(f"{word}\n" for word in self.words).encode()),
            _written(root, COUNTS, self.counts.tobytes()),
            self._write_characters(root),
            _written(root, VOCABULARY, vocabulary_text(vocabulary).encode()),
        ]

    def write_pieces(self, root: Path, num_pieces: int) -> tuple[Entry, dict[str, Any]]:
        """Learn pieces of the words of the training part, and write them.

        Returns:
            The entry of the file; the number of pieces, and their mean number in a word.
        """
        is_word = np.arange(len(self.words)) >= len(BOUNDARIES)
        seen = np.flatnonzero(is_word & (self.counts > 0))
        words, counts = [self.words[word] for word in seen], self.counts[seen]
        content = train_pieces(words, counts, num_pieces)
        indexer = PieceIndexer(content, max_pieces=LONGEST_WORD)
        total = 0
        for at in range(0, len(words), _WORDS_PER_BLOCK):
            lengths = (indexer.ids(words[at : at + _WORDS_PER_BLOCK]) > 0).sum(axis=1)
            total += int(lengths @ counts[at : at + _WORDS_PER_BLOCK])
        statistics = {"distinct": indexer.num_pieces, "per_word": total / int(counts.sum())}
        return _written(root, PIECES_FILE, content.encode()), statistics

    def _write_characters(self, root: Path) -> Entry:
        with EntryWriter(root, CHARACTERS) as file:
            for at in range(0, len(self.words), _WORDS_PER_BLOCK):
                rows = INDEXER.ids(self.words[at : at + _WORDS_PER_BLOCK])
                file.write(rows.astype(CHARACTER).tobytes())
            return file.entry()


def require_pieces(num_pieces: int) -> None:
    """Refuse a number of pieces that cannot be learned.

    Raises:
        RunError: there are more bytes than that, or the extra `pieces` is not installed.
    """
    if num_pieces < NUM_BYTES:
        raise RunError(
            f"--pieces {num_pieces}: the {NUM_BYTES} bytes are pieces too; pass a larger number, "
            "such as 8000"
        )
    import_extra(*EXTRA)


def _written(root: Path, name: str, content: bytes) -> Entry:
    with EntryWriter(root, name) as file:
        file.write(content)
        return file.entry()
