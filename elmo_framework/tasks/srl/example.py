"""Sentences with predicates and their arguments, and their batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from elmo_framework.console import plural
from elmo_framework.data.labels import batch_title, excerpt
from elmo_framework.data.text import Indexer, TextBatch, collate_text
from elmo_framework.data.vocabulary import Vocabularies, Vocabulary
from elmo_framework.errors import DataError
from elmo_framework.metrics.srl import Proposition


@dataclass(frozen=True, slots=True)
class SrlExample:
    """A sentence and its predicates, with or without their arguments.

    Attributes:
        words: of the sentence.
        propositions: one for each predicate, in order; None where they are to be predicted.
            Readers make one example for each predicate.
        predicates: the words that arguments are predicted for; None for those that
            the training data took for predicates.
        targets: the column of the corpus that marks the predicates, a cell for each word: a lemma
            or a sense; None where it has no such column. `srl-eval.pl` compares these cells.
    """

    words: tuple[str, ...]
    propositions: tuple[Proposition, ...] | None
    predicates: tuple[int | None, ...] | None = None
    targets: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        for _, tags in self.propositions or ():
            if len(tags) != len(self.words):
                raise ValueError(
                    f"{plural(len(self.words), 'word')} with {plural(len(tags), 'tag')}"
                )
        if self.targets is not None and len(self.targets) != len(self.words):
            words, targets = len(self.words), len(self.targets)
            raise ValueError(f"{plural(words, 'word')} with {plural(targets, 'target')}")
        predicates = [predicate for predicate, _ in self.propositions or ()]
        for predicate in [*predicates, *(self.predicates or ())]:
            if predicate is not None and not 0 <= predicate < len(self.words):
                raise ValueError(
                    f"predicate {predicate} is out of range for {plural(len(self.words), 'word')}"
                )


def examples_of(sentence: SrlExample, *, skip_empty: bool) -> Iterator[SrlExample]:
    """Yield an example for each predicate of a sentence; all have the same `words` object.

    Args:
        sentence: with all of its predicates and arguments.
        skip_empty: whether to skip a sentence without predicates; otherwise it has one example,
            in which every tag is O.
    """
    words, targets = sentence.words, sentence.targets
    none = Proposition(None, ("O",) * len(words))
    for proposition in sentence.propositions or (() if skip_empty else (none,)):
        yield SrlExample(words, (proposition,), targets=targets)


_PREDICATE_TAG = "-V"
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
        return sum(len(example.words) * len(places) for example, places in pairs)

    @property
    def title(self) -> str:
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


def tagged_predicates(batch: SrlBatch) -> Int[Tensor, "predicates tokens"]:
    """Return 1 at the words that are tagged as a predicate, such as both of "came up".

    Where an example has no tags, it is at the first word of each predicate.
    """
    marked, row = batch.is_predicate.clone(), 0
    for example, places in zip(batch.examples, batch.predicates, strict=True):
        for _, tags in example.propositions or ():
            is_tagged = [tag.endswith(_PREDICATE_TAG) for tag in tags]
            marked[row, : len(tags)] = torch.tensor(is_tagged, dtype=torch.long)
            row += 1
        row += 0 if example.propositions else len(places)
    return marked


def example_predicates(example: SrlExample, vocabularies: Vocabularies) -> tuple[int | None, ...]:
    """Return the predicates of an example to label; (None,) if it has none.

    If it does not list them, a word is one if it was in at least half of its occurrences in all
    counted data.

    Raises:
        DataError: it does not list them, and no data was counted: the model was imported.
    """
    if example.propositions is not None:
        return tuple(predicate for predicate, _ in example.propositions) or (None,)
    if example.predicates is not None:
        return example.predicates or (None,)
    predicates, forms = vocabularies.counted("predicates"), vocabularies.counted("forms")
    if not (predicates or forms):
        raise DataError(
            f"the imported model does not know which words are predicates in "
            f"{excerpt(example.words)}; pass their positions, from 0: "
            '{"sentence": "Dogs bark.", "predicates": [1]}'
        )
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
