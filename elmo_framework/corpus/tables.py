"""The distinct words of a corpus, and the files that tell of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from elmo_framework.corpus.manifest import Entry, EntryWriter
from elmo_framework.corpus.vocabulary_file import SPECIAL_WORDS, vocabulary_text
from elmo_framework.data.characters import BEGIN_SENTENCE, END_SENTENCE, ElmoCharacterIndexer

WORDS, VOCABULARY = "words.txt", "vocabulary.txt"
COUNTS, CHARACTERS = "counts.bin", "characters.bin"
COUNT, CHARACTER = np.dtype("<i8"), np.dtype("<u2")
INDEXER = ElmoCharacterIndexer()
"""Makes the rows of characters that are kept; other sizes are made when a model asks for them."""

LONGEST_WORD = INDEXER.max_characters - 2
"""The bytes of a word that a biLM sees."""

_BOUNDARIES = (BEGIN_SENTENCE, END_SENTENCE)
_WORDS_A_BLOCK = 8192


@final
@dataclass(frozen=True)
class WordTable:
    """The distinct words of both parts: the boundaries of a sentence, then by falling frequency.

    Attributes:
        words: as they are written.
        counts: of each in the training part, as far as it stands in the text.
    """

    words: list[str]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, counted: Mapping[str, int]) -> WordTable:
        """Bring counted words into their order."""
        others = [pair for pair in counted.items() if pair[0] not in _BOUNDARIES]
        others.sort(key=lambda pair: (-pair[1], pair[0]))
        words = [*_BOUNDARIES, *(word for word, _ in others)]
        return cls(words, np.array([counted.get(word, 0) for word in words], COUNT))

    def frequent(self, *, min_count: int, max_size: int | None) -> list[str]:
        """Return the words but the special ones, by falling frequency."""
        pairs = zip(self.words, self.counts.tolist(), strict=True)
        kept = [word for word, count in pairs if count >= min_count and word not in SPECIAL_WORDS]
        return kept[:max_size]

    def figures(self) -> dict[str, Any]:
        """Return how many words the biLM sees otherwise than they are written."""
        is_cut = np.array([len(word.encode()) > LONGEST_WORD for word in self.words])
        return {
            "cut_words": {"distinct": int(is_cut.sum()), "all": int(self.counts[is_cut].sum())},
            "boundary_words": int(self.counts[: len(_BOUNDARIES)].sum()),
        }

    def write(self, root: Path, vocabulary: Sequence[str]) -> list[Entry]:
        """Write the words, what is known of them, and the vocabulary."""
        return [
            _written(root, WORDS, "".join(f"{word}\n" for word in self.words).encode()),
            _written(root, COUNTS, self.counts.tobytes()),
            self._write_characters(root),
            _written(root, VOCABULARY, vocabulary_text(vocabulary).encode()),
        ]

    def _write_characters(self, root: Path) -> Entry:
        with EntryWriter(root, CHARACTERS) as file:
            for at in range(0, len(self.words), _WORDS_A_BLOCK):
                rows = INDEXER.ids(self.words[at : at + _WORDS_A_BLOCK])
                file.write(rows.astype(CHARACTER).tobytes())
            return file.entry()


def _written(root: Path, name: str, content: bytes) -> Entry:
    with EntryWriter(root, name) as file:
        file.write(content)
        return file.entry()
