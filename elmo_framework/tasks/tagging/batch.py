"""Tagged sentences as tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from elmo_framework.data.labels import batch_title, known_ids
from elmo_framework.data.text import Indexer, TextBatch, collate_text
from elmo_framework.data.vocabulary import Vocabulary
from elmo_framework.tasks.tagging.example import TaggedSentence


@dataclass(frozen=True, slots=True)
class TaggingBatch:
    """Sentences, padded to the longest.

    Attributes:
        text: their words.
        tags: the ids of their tags, 0 at padding; None unless all of them have tags.
        examples: the examples of the batch.
    """

    text: TextBatch
    tags: Int[Tensor, "batch tokens"] | None
    examples: tuple[TaggedSentence, ...]

    @property
    def num_tokens(self) -> int:
        """The number of words, without padding."""
        return self.text.num_words

    @property
    def title(self) -> str:
        """The words of the first sentence, and the number of further ones."""
        return batch_title(self.text.words[0], len(self.examples))


@dataclass(frozen=True, slots=True)
class TaggingCollator:
    """Makes batches of tagged sentences.

    Attributes:
        labels: the tags of the training data.
        indexers: convert words to the ids that the model reads.
    """

    labels: Vocabulary
    indexers: tuple[Indexer, ...]

    def __call__(self, examples: Sequence[TaggedSentence]) -> TaggingBatch:
        """Make a batch.

        Raises:
            DataError: a tag does not occur in the training data.
        """
        text = collate_text([example.words for example in examples], self.indexers)
        return TaggingBatch(text, self._tags(examples, text), tuple(examples))

    def _tags(self, examples: Sequence[TaggedSentence], text: TextBatch) -> Tensor | None:
        padded = np.zeros(text.mask.shape, dtype=np.int64)
        for row, example in zip(padded, examples, strict=True):
            if example.tags is None:
                return None
            row[: len(example.tags)] = known_ids(example.tags, self.labels, example.words)
        return torch.from_numpy(padded)
