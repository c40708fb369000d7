"""Sentences with words to disambiguate, and their batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from elmo_framework.data.labels import batch_title
from elmo_framework.data.text import Indexer, TextBatch, collate_text
from elmo_framework.data.vocabulary import Vocabulary

_POS = {"1": "NOUN", "2": "VERB", "3": "ADJ", "4": "ADV", "5": "ADJ"}
"""The parts of speech of WordNet's types; 5 is an adjective that belongs to another one."""

PARTS_OF_SPEECH = frozenset(_POS.values())


def lemma_and_pos(sense: str) -> tuple[str, str]:
    """Return the lemma of a sense key such as `bank%1:17:01::`, and its part of speech.

    Raises:
        ValueError: it is not a sense key of WordNet.
    """
    lemma, _, position = sense.partition("%")
    if not lemma or position[:1] not in _POS:
        raise ValueError(f"{sense!r} is not a sense key of WordNet, such as 'bank%1:17:01::'")
    return lemma, _POS[position[:1]]


@dataclass(frozen=True, slots=True)
class SenseTarget:
    """A word, or several words that are one entry of WordNet, whose sense is asked for.

    Attributes:
        start: its first word in the sentence, from 0.
        end: the word after its last.
        lemma: in lower case, with `_` between words.
        pos: NOUN, VERB, ADJ or ADV.
        senses: the sense keys that are right; None if unknown.
        first_sense: WordNet's first sense of the lemma; None if unknown.
        id: identifies the word in a file of predictions; may be empty.
    """

    start: int
    end: int
    lemma: str
    pos: str
    senses: tuple[str, ...] | None = None
    first_sense: str | None = None
    id: str = ""


@dataclass(frozen=True, slots=True)
class SenseSentence:
    """The words of a sentence, and those of them whose senses are asked for."""

    words: tuple[str, ...]
    targets: tuple[SenseTarget, ...]

    def __post_init__(self) -> None:
        for start, end in ((target.start, target.end) for target in self.targets):
            if not 0 <= start < end <= len(self.words):
                raise ValueError(
                    f"words {start} to {end} are out of range for {len(self.words)} words"
                )


@dataclass(frozen=True, slots=True)
class SenseBatch:
    """Sentences and their targets.

    Attributes:
        text: the sentences.
        spans: the sentence, the start and the end of each target.
        labels: pairs of a target and one of its senses in the vocabulary.
        examples: the sentences, in order.
    """

    text: TextBatch
    spans: Int[Tensor, "targets 3"]
    labels: Int[Tensor, "labels 2"]
    examples: tuple[SenseSentence, ...]

    @property
    def num_tokens(self) -> int:
        return self.text.num_words

    @property
    def title(self) -> str:
        return batch_title(self.text.words[0], len(self.examples))


def sense_batch(
    examples: Sequence[SenseSentence], senses: Vocabulary, indexers: Sequence[Indexer]
) -> SenseBatch:
    """Make a batch; senses that are not in the vocabulary are left out of its labels."""
    rows = [(row, each) for row, example in enumerate(examples) for each in example.targets]
    spans = [(row, target.start, target.end) for row, target in rows]
    labels = [
        (index, senses.id(sense))
        for index, (_, target) in enumerate(rows)
        for sense in target.senses or ()
        if sense in senses
    ]
    return SenseBatch(
        text=collate_text([example.words for example in examples], indexers),
        spans=torch.tensor(spans, dtype=torch.long).view(-1, 3),
        labels=torch.tensor(labels, dtype=torch.long).view(-1, 2),
        examples=tuple(examples),
    )
