"""Compact corpus of word ids, in memory or memory-mapped."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from elmo_framework.corpus.prepared import ConcatenatedShards, PreparedSplit
from elmo_framework.corpus.tables import INDEXER
from elmo_framework.data.characters import BEGIN_SENTENCE, END_SENTENCE
from elmo_framework.data.subsample import IndexedExamples
from elmo_framework.data.text import Indexer

_WORDS_A_BLOCK = 8192
_IDS_A_BLOCK = 1 << 22
_SENTENCES_A_BLOCK = 1 << 16


@dataclass(frozen=True, slots=True)
class LanguageModelingExample:
    """One sentence of at least one word."""

    words: tuple[str, ...]


@final
@dataclass(frozen=True)
class TokenIdCorpus(IndexedExamples, Iterable[LanguageModelingExample]):
    """Sentences as ids of their distinct words: four bytes a word.

    Attributes:
        words: the distinct words; the first two are the boundaries of a sentence.
        ids: the sentences one after the other, each between its boundaries.
        offsets: the start of each in `ids`, followed by the end of the last one.
        prepared: the prepared corpus that it is a part of, if any.
    """

    words: Sequence[str]
    ids: NDArray[np.int32] | ConcatenatedShards
    offsets: NDArray[np.int64]
    prepared: PreparedSplit | None = None

    @classmethod
    def read(cls, examples: Iterable[LanguageModelingExample]) -> TokenIdCorpus:
        """Read sentences in one pass; return a corpus unchanged."""
        if isinstance(examples, TokenIdCorpus):
            return examples
        word_ids: defaultdict[str, int] = defaultdict(count().__next__)
        begin, end = word_ids[BEGIN_SENTENCE], word_ids[END_SENTENCE]
        ids, offsets = array("i"), array("q", [0])
        for example in examples:
            ids.append(begin)
            ids.extend(map(word_ids.__getitem__, example.words))
            ids.append(end)
            offsets.append(len(ids))
        return cls(tuple(word_ids), np.frombuffer(ids, np.int32), np.frombuffer(offsets, np.int64))

    def __iter__(self) -> Iterator[LanguageModelingExample]:
        for number in range(self.num_sentences):
            yield self.sentence(number)

    def sentence(self, number: int) -> LanguageModelingExample:
        inside = np.arange(self.offsets[number] + 1, self.offsets[number + 1] - 1)
        return LanguageModelingExample(tuple(self.words[word] for word in self.ids[inside]))

    def sample(self, num_sentences: int) -> TokenIdCorpus:
        """Return `num_sentences` evenly spaced sentences, or all if there are fewer."""
        if num_sentences >= self.num_sentences:
            return self
        numbers = np.linspace(0, self.num_sentences, num_sentences, endpoint=False).astype(int)
        return self.part(numbers)

    def part(self, numbers: NDArray[np.int64]) -> TokenIdCorpus:
        """Return the sentences of some numbers; of a prepared corpus, with its vocabulary."""
        lengths = self.offsets[numbers + 1] - self.offsets[numbers]
        offsets = np.concatenate([[0], lengths.cumsum()])
        starts = range(0, len(numbers), _SENTENCES_A_BLOCK)
        ids = [self._ids(numbers[at : at + _SENTENCES_A_BLOCK]) for at in starts]
        return TokenIdCorpus(self.words, np.concatenate(ids), offsets, self.prepared)

    def counts(self) -> NDArray[np.int64]:
        """Return the count of each distinct word; of a prepared corpus, in its training part."""
        if self.prepared is not None:
            return self.prepared.counts
        total = np.zeros(len(self.words), np.int64)
        for begin in range(0, len(self.ids), _IDS_A_BLOCK):
            block = np.arange(begin, min(begin + _IDS_A_BLOCK, len(self.ids)))
            total += np.bincount(self.ids[block], minlength=len(self.words))
        return total

    def characters(self, indexer: Indexer) -> NDArray[np.integer[Any]]:
        """Return the row of each distinct word; a prepared corpus may already have them."""
        if self.prepared is not None and indexer.key == INDEXER.key:
            return self.prepared.characters
        starts = range(0, len(self.words), _WORDS_A_BLOCK)
        blocks = (self.words[at : at + _WORDS_A_BLOCK] for at in starts)
        return np.concatenate([_narrow(indexer.ids(block)) for block in blocks])

    def _ids(self, numbers: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the ids of some sentences, one after the other."""
        begins = self.offsets[numbers]
        lengths = self.offsets[numbers + 1] - begins
        shifts = begins - lengths.cumsum() + lengths
        return self.ids[np.arange(lengths.sum()) + np.repeat(shifts, lengths)]

    @property
    def num_sentences(self) -> int:
        return len(self.offsets) - 1

    @property
    def num_words(self) -> int:
        """The number of words, without boundaries."""
        return len(self.ids) - 2 * self.num_sentences

    @property
    def num_predictions(self) -> int:
        """How many words one direction predicts: each word, and the far boundary."""
        return len(self.ids) - self.num_sentences


def _narrow(ids: NDArray[np.int64]) -> NDArray[np.integer[Any]]:
    """Return ids in two bytes each where they fit; there are more than 65,536 pieces at times."""
    return ids.astype(np.uint16 if ids.max(initial=0) <= np.iinfo(np.uint16).max else np.int32)
