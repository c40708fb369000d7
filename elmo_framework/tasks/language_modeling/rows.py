"""Rows that read a stream of sentences side by side, window after window."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from elmo_framework.bilm.context_layers import Direction
from elmo_framework.tasks.language_modeling.corpus import Corpus


class Segment(NamedTuple):
    """A part of a sentence in a window.

    Attributes:
        place: where it begins in the window, whose rows stand one after the other.
        cursor: where its first word is in the corpus.
        length: how many words it has.
    """

    place: int
    cursor: int
    length: int


class ShuffledSentences(Iterator[int]):
    """An endless stream: all sentences in one order, then all in another, and so on.

    Args:
        num_sentences: how many there are.
        entropy: fixes the orders; the order of each pass depends on it and on nothing before.
    """

    def __init__(self, num_sentences: int, entropy: Sequence[int]) -> None:
        self._num_sentences, self._entropy = num_sentences, entropy
        self._start(0, 0)

    def __next__(self) -> int:
        if self._index == self._num_sentences:
            self._start(self._pass + 1, 0)
        self._index += 1
        return int(self._order[self._index - 1])

    def state_dict(self) -> dict[str, Any]:
        """Return the position."""
        return {"pass": self._pass, "index": self._index}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a position."""
        self._start(state["pass"], state["index"])

    def _start(self, number: int, index: int) -> None:
        self._pass, self._index = number, index
        generator = np.random.default_rng([*self._entropy, number])
        self._order = generator.permutation(self._num_sentences)


class Rows:
    """Reads sentences in one direction; each row goes on where its last window ended.

    Rows are filled one after the other. A row whose sentence has ended takes the next of the
    stream that all rows share.

    Args:
        corpus: the text.
        sentences: the stream; rows stay empty when it has ended.
        num_rows: how many rows there are, over all processes.
        num_steps: the words of a row in one window.
        direction: in which the sentences are read.
    """

    def __init__(
        self,
        corpus: Corpus,
        sentences: Iterable[int],
        *,
        num_rows: int,
        num_steps: int,
        direction: Direction,
    ) -> None:
        self._sentences, self._num_steps = iter(sentences), num_steps
        self._offsets = corpus.offsets
        self._step = 1 if direction == "forward" else -1
        self._cursors, self._remaining = [0] * num_rows, [0] * num_rows

    def window(self) -> list[Segment]:
        """Move every row on by one window; without segments the stream has ended."""
        return [segment for row in range(len(self._cursors)) for segment in self._row_segments(row)]

    def state_dict(self) -> dict[str, Any]:
        """Return the unfinished sentence of each row."""
        return {
            "cursors": torch.tensor(self._cursors),
            "remaining": torch.tensor(self._remaining),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on with unfinished sentences."""
        self._cursors = state["cursors"].tolist()
        self._remaining = state["remaining"].tolist()

    def _row_segments(self, row: int) -> Iterator[Segment]:
        place, end = row * self._num_steps, (row + 1) * self._num_steps
        while place < end and (self._remaining[row] or self._begin_sentence(row)):
            length = min(self._remaining[row], end - place)
            yield Segment(place, self._cursors[row], length)
            self._cursors[row] += self._step * length
            self._remaining[row] -= length
            place += length

    def _begin_sentence(self, row: int) -> bool:
        sentence = next(self._sentences, None)
        if sentence is None:
            return False
        begin, end = map(int, self._offsets[sentence : sentence + 2])
        self._cursors[row] = begin if self._step > 0 else end - 1
        self._remaining[row] = end - begin - 1
        return True
