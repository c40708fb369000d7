"""Batches of examples with one label each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from jaxtyping import Int
from torch import Tensor

from elmo_framework.data.labels import batch_title, label_ids
from elmo_framework.data.text import Indexer, TextBatch, collate_text
from elmo_framework.data.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class LabelledBatch:
    """Examples of one or more sentences and one label each.

    All sentences are in one text, so that each encoder runs once: the first sentence of every
    example, then the second of every example, and so on, padded to the longest.

    Attributes:
        text: the sentences.
        labels: the ids of the labels; None unless all examples have one.
        examples: the examples, in order.
    """

    text: TextBatch
    labels: Int[Tensor, " batch"] | None
    examples: tuple[Any, ...]

    @property
    def num_tokens(self) -> int:
        """The number of words, without padding."""
        return self.text.num_words

    @property
    def title(self) -> str:
        """The sentences of the first example, separated by `/`, and the number of others."""
        first, *others = self.text.words[:: len(self.examples)]
        words = (*first, *chain.from_iterable(("/", *sentence) for sentence in others))
        return batch_title(words, len(self.examples))


@dataclass(frozen=True, slots=True)
class LabelledCollator:
    """Makes batches of examples with one label each.

    Attributes:
        labels: those of the training data.
        indexers: turn words into the ids that the model reads.
        sentences: returns the sentences of an example, the same number for all; picklable.
        label: returns the label of an example, None if unknown; picklable.
    """

    labels: Vocabulary
    indexers: tuple[Indexer, ...]
    sentences: Callable[[Any], Iterable[Sequence[str]]]
    label: Callable[[Any], str | None]

    def __call__(self, examples: Sequence[Any]) -> LabelledBatch:
        """Make a batch.

        Raises:
            DataError: a label does not occur in the training data.
        """
        sentences = [tuple(self.sentences(example)) for example in examples]
        text = collate_text([*chain(*zip(*sentences, strict=True))], self.indexers)
        last = (words for *_, words in sentences)
        labels = label_ids(zip(map(self.label, examples), last, strict=True), self.labels)
        return LabelledBatch(text, labels, tuple(examples))
