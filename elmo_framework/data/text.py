"""Batches of sentences, and indexers that convert words to ids."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Int
from numpy.typing import NDArray
from torch import Tensor


class DocumentPlace(NamedTuple):
    """The place of a sentence in its document.

    Attributes:
        sentences: the words of all sentences of the document.
        number: of the sentence among them, from 0.
    """

    sentences: tuple[tuple[str, ...], ...]
    number: int


@dataclass(frozen=True, slots=True)
class TextBatch:
    """Sentences, padded to the longest.

    Attributes:
        words: the words of each sentence, without padding.
        mask: true for words, false for padding.
        ids: the results of indexers by `Indexer.key`: "batch tokens" or
            "batch tokens characters"; 0 is padding.
        places: of each sentence in its document; None where documents are unknown.
        read_ahead: frozen layers that were read before the model computes, by a key of their
            source.
        num_groups: of rows, such as all premises, then all hypotheses; row i of each group
            belongs to example i, so a state that is carried continues from group to group.
    """

    words: tuple[tuple[str, ...], ...]
    mask: Bool[Tensor, "batch tokens"]
    ids: Mapping[str, Tensor]
    places: tuple[DocumentPlace, ...] | None = None
    read_ahead: Mapping[str, Tensor] = field(default_factory=dict)
    num_groups: int = 1

    @property
    def num_words(self) -> int:
        return sum(map(len, self.words))

    @property
    def mask_on_cpu(self) -> Bool[Tensor, "batch tokens"]:
        """The mask, known without waiting for its device."""
        if self.mask.is_cpu:
            return self.mask
        return mask_of([*map(len, self.words)], self.mask.shape[1])

    @property
    def groups(self) -> Sequence[TextBatch]:
        """The groups, as padded as the whole batch."""
        if self.num_groups == 1:
            return (self,)
        return [self.rows(each) for each in torch.arange(len(self.words)).chunk(self.num_groups)]

    def rows(self, rows: Int[Tensor, " rows"]) -> TextBatch:
        """Return some of the sentences, in another order or repeated, as one group."""
        numbers, rows = rows.tolist(), rows.to(self.mask.device, non_blocking=True)
        return TextBatch(
            words=tuple(self.words[row] for row in numbers),
            mask=self.mask[rows],
            ids={key: ids[rows] for key, ids in self.ids.items()},
            places=None if self.places is None else tuple(self.places[row] for row in numbers),
        )

    def cropped(self) -> TextBatch:
        """Return the batch as wide as its longest sentence, which has at least one word."""
        longest = max(1, *map(len, self.words))
        ids = {key: ids[:, :longest] for key, ids in self.ids.items()}
        return replace(self, mask=self.mask[:, :longest], ids=ids)


class Indexer(ABC):
    """Converts the words of a sentence to ids; picklable.

    Indexers with the same `key` return the same ids, so that embedders can share them.
    """

    @property
    @abstractmethod
    def key(self) -> str:
        """The key of the result in `TextBatch.ids`."""

    @abstractmethod
    def ids(self, words: Sequence[str]) -> NDArray[np.int64]:
        """Return "tokens" or "tokens characters"; no id is 0, which is padding."""


class SubwordIndexer(Indexer, ABC):
    """Converts each word to a row of ids: of its characters, its bytes or its pieces.

    Rows are equally wide, whatever the words are. The words `<S>` and `</S>` are the boundaries of
    a sentence.
    """

    @abstractmethod
    def boundaries(self, width: int) -> NDArray[np.int64]:
        """Return the rows of `<S>` and `</S>` in another width: "2 characters"."""


def collate_text(
    sentences: Sequence[Sequence[str]],
    indexers: Iterable[Indexer] = (),
    *,
    places: Iterable[DocumentPlace] | None = None,
    num_groups: int = 1,
) -> TextBatch:
    """Batch sentences, padded to the longest, and to at least one word; see `TextBatch`."""
    lengths = [len(words) for words in sentences]
    num_tokens = max(1, *lengths) if lengths else 1
    return TextBatch(
        words=tuple(tuple(words) for words in sentences),
        mask=mask_of(lengths, num_tokens),
        ids={indexer.key: _padded(indexer, sentences, num_tokens) for indexer in indexers},
        places=None if places is None else tuple(places),
        num_groups=num_groups,
    )


def mask_of(lengths: Sequence[int], num_tokens: int) -> Bool[Tensor, "batch tokens"]:
    """Return the mask, on the CPU, of rows of these lengths."""
    return torch.arange(num_tokens) < torch.tensor(lengths, dtype=torch.long)[:, None]


def _padded(indexer: Indexer, sentences: Sequence[Sequence[str]], num_tokens: int) -> Tensor:
    rows = [indexer.ids(words) for words in sentences]
    widths = np.max([ids.shape[1:] for ids in rows or [indexer.ids(())]], axis=0)
    padded = np.zeros((len(rows), num_tokens, *widths.astype(int)), dtype=np.int64)
    for row, ids in zip(padded, rows, strict=True):
        row[tuple(map(slice, ids.shape))] = ids
    return torch.from_numpy(padded)
