"""A batch of windows, and what makes it of words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
import torch
from jaxtyping import Bool, Int
from numpy.typing import NDArray
from torch import Tensor

from elmo_framework.common.errors import BuildError
from elmo_framework.data.text import Indexer

_WORDS_A_BLOCK = 8192


@dataclass(frozen=True, slots=True)
class Window:
    """What each row of one direction reads next, in reading order.

    Attributes:
        words: which of the batch's distinct words stands there.
        targets: the id in the softmax of the word that follows it.
        mask: true where a word stands; a row's words come first.
    """

    words: Int[Tensor, "rows steps"]
    targets: Int[Tensor, "rows steps"]
    mask: Bool[Tensor, "rows steps"]


@dataclass(frozen=True, slots=True)
class WindowBatch:
    """One window in each direction; row i goes on from row i of the batch before.

    Attributes:
        characters: the rows of the distinct words of both windows.
        forward: read from left to right.
        backward: read from right to left.
        num_tokens: the words of one direction, without padding.
        title: what a message calls this batch.
    """

    characters: Int[Tensor, "distinct characters"]
    forward: Window
    backward: Window
    num_tokens: int
    title: str


class WordWindow(NamedTuple):
    """A window in words of the corpus.

    Attributes:
        inputs: the word read.
        targets: the word that follows it.
        mask: true where a word stands.
    """

    inputs: NDArray[np.int32]
    targets: NDArray[np.int32]
    mask: NDArray[np.bool_]


@final
class WindowCollator:
    """What the `windows` data loader makes batches with.

    Args:
        characters: turns words into the rows that the token encoder reads.
        targets: turns words into their ids in the softmax.
    """

    def __init__(self, characters: Indexer, targets: Indexer) -> None:
        self._characters, self._targets = characters, targets

    def __call__(self, examples: Sequence[Any]) -> WindowBatch:
        """Refuse sentences: a row of a batch goes on from the batch before.

        Raises:
            BuildError: always.
        """
        raise BuildError(
            "data_loader: this model reads windows of running text, not batches of sentences; "
            "set data_loader to {type: 'windows', batch_size: ..., unroll_steps: ...}"
        )

    def tables(self, words: Sequence[str]) -> WordTables:
        """Look up the distinct words of a corpus, once for all batches."""
        blocks = [words[at : at + _WORDS_A_BLOCK] for at in range(0, len(words), _WORDS_A_BLOCK)]
        characters = [self._characters.ids(block).astype(np.uint16) for block in blocks]
        return WordTables(words, np.concatenate(characters), self._targets.ids(words))


@final
@dataclass(frozen=True)
class WordTables:
    """The distinct words of a corpus as a biLM and its softmax know them.

    Attributes:
        words: as they are written.
        characters: the row of each, "words characters".
        targets: the id of each in the softmax.
    """

    words: Sequence[str]
    characters: NDArray[np.uint16]
    targets: NDArray[np.int64]

    def batch(self, forward: WordWindow, backward: WordWindow) -> WindowBatch:
        """Make a batch."""
        both = np.stack([forward.inputs, backward.inputs])
        distinct, places = np.unique(both, return_inverse=True)
        places = places.reshape(both.shape)
        num_tokens = int(forward.mask.sum())
        return WindowBatch(
            characters=torch.from_numpy(self.characters[distinct].astype(np.int64)),
            forward=self._window(forward, places[0]),
            backward=self._window(backward, places[1]),
            num_tokens=num_tokens,
            title=f"{num_tokens} words, the first row is {' '.join(self._first_row(forward))!r}",
        )

    def _window(self, window: WordWindow, places: NDArray[np.int64]) -> Window:
        return Window(
            words=torch.from_numpy(places),
            targets=torch.from_numpy(self.targets[window.targets]),
            mask=torch.from_numpy(window.mask),
        )

    def _first_row(self, window: WordWindow) -> Iterator[str]:
        return (self.words[word] for word in window.inputs[0][window.mask[0]])
