"""Classified texts as tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jaxtyping import Int
from torch import Tensor

from elmo_framework.data.labels import batch_title, label_ids
from elmo_framework.data.text import Indexer, TextBatch, collate_text
from elmo_framework.data.vocabulary import Vocabulary

from .example import ClassifiedText


@dataclass(frozen=True, slots=True)
class ClassificationBatch:
    """Texts, padded to the longest.

    Attributes:
        text: the words.
        labels: the ids of the classes; None if one of them is unknown.
        examples: the examples of the batch.
    """

    text: TextBatch
    labels: Int[Tensor, " batch"] | None
    examples: tuple[ClassifiedText, ...]

    @property
    def num_tokens(self) -> int:
        """The number of words, without padding."""
        return self.text.num_words

    @property
    def title(self) -> str:
        """The beginning of the first text and the number of others, for messages."""
        return batch_title(self.text.words[0], len(self.examples))


@dataclass(frozen=True, slots=True)
class ClassificationCollator:
    """Makes batches of classified texts.

    Attributes:
        labels: the classes of the training data.
        indexers: turn words into the ids that the model reads.
    """

    labels: Vocabulary
    indexers: tuple[Indexer, ...]

    def __call__(self, examples: Sequence[ClassifiedText]) -> ClassificationBatch:
        """Make a batch.

        Raises:
            DataError: a class did not occur in training.
        """
        text = collate_text([example.words for example in examples], self.indexers)
        labels = label_ids(((example.label, example.words) for example in examples), self.labels)
        return ClassificationBatch(text, labels, tuple(examples))
