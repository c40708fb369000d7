"""A batch of windows, and what makes it of words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
import torch
from jaxtyping import Bool, Int
from numpy.typing import NDArray
from torch import Tensor

from elmo_framework.console import plural
from elmo_framework.corpus.vocabulary_file import UNKNOWN_WORD
from elmo_framework.data.text import Indexer
from elmo_framework.errors import BuildError
from elmo_framework.tasks.language_modeling.corpus import TokenIdCorpus


@dataclass(frozen=True, slots=True)
class Window:
    """The next words of each row in one direction, in reading order.

    Attributes:
        words: indices into the distinct words of the batch.
        targets: the id in the softmax of the word that follows it.
        lengths: number of words of each row, without padding. Not a tensor, as the packing of a
            batch depends on it, and reading it from a GPU would synchronize.
    """

    words: Int[Tensor, "rows steps"]
    targets: Int[Tensor, "rows steps"]
    lengths: NDArray[np.int64]

    @property
    def mask(self) -> Bool[Tensor, "rows steps"]:
        """True at words, not at padding; on the CPU, whatever the device of the words."""
        steps = np.arange(self.words.shape[1])
        return torch.from_numpy(steps < self.lengths[:, None])


@final
class CharacterTable:
    """The characters of all words of a text, cached on the device that uses them.

    Args:
        rows: the ids of each word's characters, bytes or pieces, "words characters".
    """

    def __init__(self, rows: NDArray[np.integer[Any]]) -> None:
        # PyTorch cannot gather uint16. The ids of characters end at 261, those of pieces do not.
        is_small = rows.max(initial=0) <= np.iinfo(np.int16).max
        self._rows = torch.from_numpy(rows.astype(np.int16 if is_small else np.int32))

    def of(self, words: Int[Tensor, " words"]) -> Int[Tensor, "words characters"]:
        """Return the rows of some words, on their device; the table is moved there once."""
        if self._rows.device != words.device:
            self._rows = self._rows.to(words.device)
        return self._rows.index_select(0, words).long()


@dataclass(frozen=True, slots=True)
class WindowBatch:
    """One window in each direction; row i continues row i of the previous batch.

    Attributes:
        table: the characters of all words of the text.
        distinct: the distinct words of the two windows.
        forward: read from left to right.
        backward: read from right to left.
        num_tokens: the words of one direction, without padding.
        title: the name of this batch in messages.
    """

    table: CharacterTable
    distinct: Int[Tensor, " distinct"]
    forward: Window
    backward: Window
    num_tokens: int
    title: str

    @property
    def characters(self) -> Int[Tensor, "distinct characters"]:
        return self.table.of(self.distinct)


class WordWindow(NamedTuple):
    """A window in words of the corpus.

    Attributes:
        inputs: the word read.
        targets: the word that follows it.
        mask: true at words, not at padding.
    """

    inputs: NDArray[np.int32]
    targets: NDArray[np.int32]
    mask: NDArray[np.bool_]


@final
class WindowCollator:
    """Collator of the `windows` data loader.

    Args:
        characters: converts words to the input of the token encoder.
        targets: converts words to their ids in the softmax.
    """

    def __init__(self, characters: Indexer, targets: Indexer) -> None:
        self._characters, self._targets = characters, targets

    def __call__(self, examples: Sequence[Any]) -> WindowBatch:
        """Reject sentences: each row of a batch continues the previous batch.

        Raises:
            BuildError: always.
        """
        raise BuildError(
            "data_loader: this model reads windows of running text, not batches of sentences; "
            "set data_loader to {type: 'windows', batch_size: ..., unroll_steps: ...}"
        )

    @property
    def unknown(self) -> int:
        """The id of unknown words in the softmax."""
        return int(self._targets.ids([UNKNOWN_WORD])[0])

    def tables(self, corpus: TokenIdCorpus) -> WordTables:
        """Look up the distinct words of a corpus, once for all batches."""
        characters = corpus.characters(self._characters)
        return WordTables(corpus.words, CharacterTable(characters), self._targets.ids(corpus.words))


@final
@dataclass(frozen=True)
class WordTables:
    """The distinct words of a corpus as input of a biLM and of its softmax."""

    words: Sequence[str]
    characters: CharacterTable
    targets: NDArray[np.int64]

    def batch(self, forward: WordWindow, backward: WordWindow) -> WindowBatch:
        both = np.stack([forward.inputs, backward.inputs])
        distinct, places = np.unique(both, return_inverse=True)
        places = places.reshape(both.shape)
        num_tokens = int(forward.mask.sum())
        first_row = " ".join(self.words[word] for word in forward.inputs[0][forward.mask[0]])
        return WindowBatch(
            table=self.characters,
            distinct=torch.from_numpy(distinct),
            forward=self._window(forward, places[0]),
            backward=self._window(backward, places[1]),
            num_tokens=num_tokens,
            title=f"{plural(num_tokens, 'word')}, the first row is {first_row!r}",
        )

    def _window(self, window: WordWindow, places: NDArray[np.int64]) -> Window:
        return Window(
            words=torch.from_numpy(places),
            targets=torch.from_numpy(self.targets[window.targets]),
            lengths=window.mask.sum(1),
        )
