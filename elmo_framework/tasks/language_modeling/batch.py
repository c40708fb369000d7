"""A batch of windows, and what makes it of words."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, final

import numpy as np
import torch
from jaxtyping import Bool, Int
from numpy.typing import NDArray
from torch import Tensor

from elmo_framework.console import plural
from elmo_framework.corpus.vocabulary_file import UNKNOWN_WORD
from elmo_framework.data.batch import StaticBatch
from elmo_framework.data.text import Indexer
from elmo_framework.errors import BuildError
from elmo_framework.tasks.language_modeling.corpus import TokenIdCorpus

_DISTINCT_STEP = 256


@dataclass(frozen=True, slots=True)
class Window:
    """The next words of each row in one direction, in reading order.

    Attributes:
        words: indices into the distinct words of the batch.
        targets: the id in the softmax of the word that follows it.
        is_word: true at words, not at padding; on the device of the words.
        lengths: number of words of each row, without padding. Not a tensor, as the packing of a
            batch depends on it, and reading it from a GPU would synchronize.
    """

    words: Int[Tensor, "rows steps"]
    targets: Int[Tensor, "rows steps"]
    is_word: Bool[Tensor, "rows steps"]
    lengths: NDArray[np.int64]

    @property
    def mask(self) -> Bool[Tensor, "rows steps"]:
        """As `is_word`, but on the CPU, whatever the device of the words."""
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
class WindowBatch(StaticBatch):
    """One window in each direction; row i continues row i of the previous batch.

    On accelerators `distinct` is padded by repetition to a multiple of 256, so that few shapes
    occur: for each new one cuDNN looks for an algorithm, and an update is recorded.

    Attributes:
        table: the characters of all words of the text.
        distinct: the distinct words of the two windows.
        num_distinct: their number; on accelerators some words of `distinct` repeat.
        forward: read from left to right.
        backward: read from right to left.
        num_tokens: the words of one direction, without padding.
        title: the name of this batch in messages.
        numbers: see `StaticBatch`.
    """

    table: CharacterTable
    distinct: Int[Tensor, " distinct"]
    num_distinct: int
    forward: Window
    backward: Window
    num_tokens: int
    title: str
    numbers: Int[Tensor, " numbers"] | None = None

    @property
    def form(self) -> Hashable | None:
        """Equal for batches of the same shapes and table, which a recorded update reads.

        None where rows have padding or on the CPU.
        """
        num_steps = self.forward.words.shape[1]
        is_full = all((each.lengths == num_steps).all() for each in (self.forward, self.backward))
        if self.numbers is None or not is_full:
            return None
        return self.table, len(self.numbers), *self.forward.words.shape

    @property
    def characters(self) -> Int[Tensor, "distinct characters"]:
        return self.table.of(self.distinct)

    def packed(self) -> WindowBatch:
        windows = self.forward, self.backward
        parts = [tensor for each in windows for tensor in (each.words, each.targets, each.is_word)]
        padding = self.distinct[:1].expand(-self.num_distinct % _DISTINCT_STEP)
        numbers = torch.cat([part.flatten().int() for part in (*parts, self.distinct, padding)])
        return replace(self, numbers=numbers)

    def unpacked(self, numbers: Int[Tensor, " numbers"]) -> WindowBatch:
        shape = self.forward.words.shape
        size = shape.numel()
        sizes = [*[size] * 6, len(numbers) - 6 * size]
        *parts, distinct = torch.split(numbers.long(), sizes)
        words, targets, is_word = ([part.view(shape) for part in parts[at::3]] for at in range(3))
        forward, backward = (
            replace(window, words=words[at], targets=targets[at], is_word=is_word[at].bool())
            for at, window in enumerate((self.forward, self.backward))
        )
        return replace(self, distinct=distinct, forward=forward, backward=backward, numbers=numbers)


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
            num_distinct=len(distinct),
            forward=self._window(forward, places[0]),
            backward=self._window(backward, places[1]),
            num_tokens=num_tokens,
            title=f"{plural(num_tokens, 'word')}, the first row is {first_row!r}",
        )

    def _window(self, window: WordWindow, places: NDArray[np.int64]) -> Window:
        return Window(
            words=torch.from_numpy(places),
            targets=torch.from_numpy(self.targets[window.targets]),
            is_word=torch.from_numpy(window.mask),
            lengths=window.mask.sum(1),
        )
