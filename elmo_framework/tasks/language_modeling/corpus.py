"""A text in memory, as compact as its words allow."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count

import numpy as np
from numpy.typing import NDArray

from elmo_framework.data.characters import BEGIN_SENTENCE, END_SENTENCE
from elmo_framework.tasks.language_modeling.example import LanguageModelingExample


@dataclass(frozen=True)
class Corpus:
    """Sentences as ids of their distinct words: four bytes a word.

    Attributes:
        words: the distinct words; the first two are the boundaries of a sentence.
        ids: the sentences one after the other, each between its boundaries.
        offsets: where each begins in `ids`, and at the end where the last one ends.
    """

    words: tuple[str, ...]
    ids: NDArray[np.int32]
    offsets: NDArray[np.int64]

    @classmethod
    def read(cls, examples: Iterable[LanguageModelingExample]) -> Corpus:
        """Read sentences, each once."""
        known: defaultdict[str, int] = defaultdict(count().__next__)
        begin, end = known[BEGIN_SENTENCE], known[END_SENTENCE]
        ids, offsets = array("i"), array("q", [0])
        for example in examples:
            ids.append(begin)
            ids.extend(map(known.__getitem__, example.words))
            ids.append(end)
            offsets.append(len(ids))
        return cls(tuple(known), np.frombuffer(ids, np.int32), np.frombuffer(offsets, np.int64))

    @property
    def num_sentences(self) -> int:
        """The number of sentences."""
        return len(self.offsets) - 1

    @property
    def num_words(self) -> int:
        """The number of words, without boundaries."""
        return len(self.ids) - 2 * self.num_sentences

    @property
    def num_predictions(self) -> int:
        """How many words one direction predicts: each word, and the far boundary."""
        return len(self.ids) - self.num_sentences
