"""Pairs of sentences as tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jaxtyping import Int
from torch import Tensor

from elmo_framework.data.labels import batch_title, label_ids
from elmo_framework.data.text import Indexer, TextBatch, collate_text
from elmo_framework.data.vocabulary import Vocabulary
from elmo_framework.tasks.entailment.example import SentencePair


@dataclass(frozen=True, slots=True)
class EntailmentBatch:
    """Pairs of sentences; all sentences are read together, so that each encoder runs once.

    Attributes:
        text: the premises and after them the hypotheses, padded to the longest sentence.
        labels: the ids of the labels of the pairs; None unless all of them are known.
        examples: what the batch was made of.
    """

    text: TextBatch
    labels: Int[Tensor, " batch"] | None
    examples: tuple[SentencePair, ...]

    @property
    def num_tokens(self) -> int:
        """The number of words, without padding."""
        return self.text.num_words

    @property
    def title(self) -> str:
        """The words of the first pair, and how many follow it."""
        first = self.examples[0]
        words = (*first.premise, "/", *first.hypothesis)
        return batch_title(words, len(self.examples))


@dataclass(frozen=True, slots=True)
class EntailmentCollator:
    """Makes batches.

    Attributes:
        labels: those of the training data.
        indexers: what the model's embedders asked for.
    """

    labels: Vocabulary
    indexers: tuple[Indexer, ...]

    def __call__(self, examples: Sequence[SentencePair]) -> EntailmentBatch:
        """Make a batch.

        Raises:
            DataError: a label was not seen in training.
        """
        premises = [example.premise for example in examples]
        hypotheses = [example.hypothesis for example in examples]
        text = collate_text([*premises, *hypotheses], self.indexers)
        labels = label_ids(((held.label, held.hypothesis) for held in examples), self.labels)
        return EntailmentBatch(text, labels, tuple(examples))
