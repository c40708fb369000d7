"""Rows that read a stream of sentences side by side, window after window."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, final

import numpy as np
import torch
from numpy.typing import NDArray

from elmo_framework.bilm.context_layers import Direction
from elmo_framework.tasks.language_modeling.corpus import TokenIdCorpus


class Segments(NamedTuple):
    """The parts of sentences in a window, of all its rows.

    Attributes:
        places: the start of each in the window, whose rows are concatenated.
        cursors: where the first word of each is in the corpus.
        lengths: how many words each has.
    """

    places: NDArray[np.int64]
    cursors: NDArray[np.int64]
    lengths: NDArray[np.int64]


@final
class SentenceOrder:
    """Sentences in the order in which they are read.

    Args:
        num_sentences: of the text.
        entropy: fixes the orders of an endless stream: all sentences in one order, then all in
            another, and so on; the order of each pass depends on it and on nothing before. None
            to read all sentences once, in order.
    """

    def __init__(self, num_sentences: int, entropy: Sequence[int] | None = None) -> None:
        self._num_sentences, self._entropy = num_sentences, entropy
        self._num_passes, self._ahead = 1, self._order(0)

    def ahead(self, number: int) -> NDArray[np.int64]:
        """Return the next sentences, as many or as there are; they stay ahead."""
        while len(self._ahead) < number and self._entropy is not None:
            self._ahead = np.concatenate([self._ahead, self._order(self._num_passes)])
            self._num_passes += 1
        return self._ahead[:number]

    def skip(self, number: int) -> None:
        self._ahead = self._ahead[number:]

    def state_dict(self) -> dict[str, Any]:
        num_behind = self._num_passes * self._num_sentences - len(self._ahead)
        return {
            "pass": num_behind // self._num_sentences,
            "index": num_behind % self._num_sentences,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        number, index = state["pass"], state["index"]
        self._num_passes, self._ahead = number + 1, self._order(number)[index:]

    def _order(self, number: int) -> NDArray[np.int64]:
        if self._entropy is None:
            return np.arange(self._num_sentences)
        generator = np.random.default_rng([*self._entropy, number])
        return generator.permutation(self._num_sentences)


class SentenceStreams:
    """Reads sentences in one direction; each row continues where its last window ended.

    Rows are filled one after the other. A row whose sentence has ended takes the next of the
    stream that all rows share.

    Args:
        corpus: the text.
        sentences: the stream; rows stay empty when it has ended.
        num_rows: number of rows over all processes.
        num_steps: the words of a row in one window.
        direction: the reading direction.
    """

    def __init__(
        self,
        corpus: TokenIdCorpus,
        sentences: SentenceOrder,
        *,
        num_rows: int,
        num_steps: int,
        direction: Direction,
    ) -> None:
        self._sentences, self._num_steps = sentences, num_steps
        self._offsets = corpus.offsets
        self._step = 1 if direction == "forward" else -1
        self._starts = num_steps * np.arange(num_rows)
        self._cursors, self._remaining = np.zeros((2, num_rows), np.int64)

    def window(self) -> Segments:
        """Move every row on by one window; without segments the stream has ended."""
        filled = np.minimum(self._remaining, self._num_steps)
        parts = zip(self._continue(filled), self._begin(filled), strict=True)
        return Segments(*map(np.concatenate, parts))

    def state_dict(self) -> dict[str, Any]:
        """Return the unfinished sentence of each row."""
        return {
            "cursors": torch.tensor(self._cursors),
            "remaining": torch.tensor(self._remaining),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._cursors = state["cursors"].numpy().copy()
        self._remaining = state["remaining"].numpy().copy()

    def _continue(self, filled: NDArray[np.int64]) -> Segments:
        """Read on in unfinished sentences, so many words in each row."""
        rows = np.flatnonzero(filled)
        segments = Segments(self._starts[rows], self._cursors[rows], filled[rows])
        self._cursors += self._step * filled
        self._remaining -= filled
        return segments

    def _begin(self, filled: NDArray[np.int64]) -> Segments:
        """Read the next sentences, after the words that each row has got already."""
        sentences, bounds = self._take(self._num_steps - filled)
        rows = np.repeat(np.arange(len(filled)), np.diff(bounds))
        begins, ends = self._offsets[sentences], self._offsets[sentences + 1]
        whole = ends - begins - 1
        before = np.cumsum(whole) - whole
        places = self._starts[rows] + filled[rows] + before - before[bounds[rows]]
        cursors = begins if self._step > 0 else ends - 1
        lengths = np.minimum(whole, self._starts[rows] + self._num_steps - places)
        # Of several sentences of a row, NumPy keeps the values of the last.
        self._cursors[rows] = cursors + self._step * lengths
        self._remaining[rows] = whole - lengths
        return Segments(places, cursors, lengths)

    def _take(self, wanted: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Take what rows need off the stream.

        Returns:
            the sentences, and where those of each row begin among them, and the last ones end.
        """
        number = len(wanted)
        while True:
            ahead = self._sentences.ahead(number)
            bounds = _bounds(self._offsets[ahead + 1] - self._offsets[ahead] - 1, wanted)
            if bounds[-1] < len(ahead) or len(ahead) < number:
                break
            number *= 2
        self._sentences.skip(bounds[-1])
        return ahead[: bounds[-1]], np.array(bounds)


def _bounds(lengths: NDArray[np.int64], wanted: NDArray[np.int64]) -> list[int]:
    """Return where the sentences of each row begin, and at the end where the last ones end.

    Each row takes sentences until they have the words that it wants, or none is left.
    """
    ends = [0, *np.cumsum(lengths).tolist()]
    bounds = [0]
    for words in wanted.tolist():
        first = bounds[-1]
        bounds.append(bisect_left(ends, ends[first] + words, first, len(lengths)))
    return bounds
