"""Classified texts as tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import shorten

import torch
from jaxtyping import Int
from torch import Tensor

from elmo_framework.common.errors import DataError
from elmo_framework.data.text import Indexer, TextBatch, collate_text
from elmo_framework.data.vocabulary import Vocabulary

from .example import ClassifiedText


@dataclass(frozen=True, slots=True)
class ClassificationBatch:
    """Texts, padded to the longest.

    Attributes:
        text: their words.
        labels: the ids of their classes; None unless all of them are known.
        examples: what the batch was made of.
    """

    text: TextBatch
    labels: Int[Tensor, " batch"] | None
    examples: tuple[ClassifiedText, ...]

    @property
    def num_tokens(self) -> int:
        """The number of words, without padding."""
        return sum(map(len, self.text.words))

    @property
    def title(self) -> str:
        """The beginning of the first text, and how many follow it."""
        return f"{_shown(self.examples[0])} and {len(self.examples) - 1} more"


@dataclass(frozen=True, slots=True)
class ClassificationCollator:
    """Makes batches of classified texts.

    Attributes:
        labels: the classes of the training data.
        indexers: what turns words into the ids that the model reads.
    """

    labels: Vocabulary
    indexers: tuple[Indexer, ...]

    def __call__(self, examples: Sequence[ClassifiedText]) -> ClassificationBatch:
        """Make a batch.

        Raises:
            DataError: a class was not seen in training.
        """
        text = collate_text([example.words for example in examples], self.indexers)
        ids = [self._id(example) for example in examples]
        labels = None if None in ids else torch.tensor(ids, dtype=torch.long)
        return ClassificationBatch(text, labels, tuple(examples))

    def _id(self, example: ClassifiedText) -> int | None:
        if example.label is None:
            return None
        try:
            return self.labels.id(example.label)
        except DataError as error:
            raise DataError(f"{error} It is that of: {_shown(example)}") from error


def _shown(example: ClassifiedText) -> str:
    return repr(shorten(" ".join(example.words), width=100, placeholder=" ..."))
