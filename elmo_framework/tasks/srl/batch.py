"""Sentences and their predicates as tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from elmo_framework.data.labels import batch_title
from elmo_framework.data.text import Indexer, TextBatch, collate_text
from elmo_framework.data.vocabulary import Vocabularies, Vocabulary
from elmo_framework.metrics.srl import Proposition
from elmo_framework.tasks.srl.example import SrlExample

UNCOUNTED = -100
"""Tag id without a loss: of padding, and of tags that do not occur in the training data."""


@dataclass(frozen=True, slots=True)
class SrlBatch:
    """Distinct sentences, and the predicates to label, each with its sentence.

    Attributes:
        text: the words of the sentences, padded to the longest.
        sentence_ids: the sentence of each predicate.
        example_ids: the example of each predicate.
        is_predicate: 1 at the predicate itself; 0 everywhere for a sentence without any.
        tags: the ids of the tags, or `UNCOUNTED`; None unless all examples have them.
        predicates: the positions of the predicates of each example.
        examples: the examples of the batch.
    """

    text: TextBatch
    sentence_ids: Int[Tensor, " predicates"]
    example_ids: Int[Tensor, " predicates"]
    is_predicate: Int[Tensor, "predicates tokens"]
    tags: Int[Tensor, "predicates tokens"] | None
    predicates: tuple[tuple[int | None, ...], ...]
    examples: tuple[SrlExample, ...]

    @property
    def mask(self) -> Bool[Tensor, "predicates tokens"]:
        """True at the words of a predicate's sentence."""
        return self.text.mask.index_select(0, self.sentence_ids)

    @property
    def num_tokens(self) -> int:
        """The number of words, those of a sentence once for each of its predicates."""
        pairs = zip(self.examples, self.predicates, strict=True)
        return sum(len(example.words) * len(asked) for example, asked in pairs)

    @property
    def title(self) -> str:
        """The words of the first example, and the number of further ones."""
        return batch_title(self.examples[0].words, len(self.examples))


def srl_batch(
    examples: Sequence[SrlExample],
    predicates: Sequence[tuple[int | None, ...]],
    labels: Vocabulary,
    indexers: Sequence[Indexer],
) -> SrlBatch:
    """Make a batch of examples.

    Args:
        examples: one or more.
        predicates: for each example, those to label.
        labels: the tags of the training data.
        indexers: convert words to the ids that the model reads.
    """
    distinct = dict.fromkeys(example.words for example in examples)
    rows = {words: row for row, words in enumerate(distinct)}
    text = collate_text(list(rows), indexers)
    owners = [number for number, places in enumerate(predicates) for _ in places]
    is_predicate = np.zeros((len(owners), text.mask.shape[1]), dtype=np.int64)
    for row, place in zip(is_predicate, chain(*predicates), strict=True):
        if place is not None:
            row[place] = 1
    return SrlBatch(
        text=text,
        sentence_ids=torch.tensor([rows[examples[owner].words] for owner in owners]),
        example_ids=torch.tensor(owners),
        is_predicate=torch.from_numpy(is_predicate),
        tags=_tags(examples, is_predicate.shape, labels),
        predicates=tuple(predicates),
        examples=tuple(examples),
    )


def example_predicates(example: SrlExample, vocabularies: Vocabularies) -> tuple[int | None, ...]:
    """Return the predicates of an example to label; (None,) if it has none.

    If it does not list them, a word is one if it was in at least half of its occurrences in all
    counted data.
    """
    if example.propositions is not None:
        return tuple(predicate for predicate, _ in example.propositions) or (None,)
    if example.predicates is not None:
        return example.predicates or (None,)
    predicates, forms = vocabularies.counted("predicates"), vocabularies.counted("forms")
    # A run of an earlier version has no forms, and its predicates are only these words.
    return tuple(
        place
        for place, form in enumerate(map(str.lower, example.words))
        if form in predicates and 2 * predicates[form] >= forms.get(form, 0)
    ) or (None,)


def _tags(
    examples: Sequence[SrlExample], shape: tuple[int, ...], labels: Vocabulary
) -> Int[Tensor, "predicates tokens"] | None:
    propositions: list[Proposition] = []
    for example in examples:
        if example.propositions is None:
            return None
        none = Proposition(None, ("O",) * len(example.words))
        propositions += example.propositions or (none,)
    padded = np.full(shape, UNCOUNTED, dtype=np.int64)
    for row, (_, tags) in zip(padded, propositions, strict=True):
        row[: len(tags)] = [labels.id(tag) if tag in labels else UNCOUNTED for tag in tags]
    return torch.from_numpy(padded)
