"""Constituency parsing as a task: each span of a sentence has a label, or none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import torch
from jaxtyping import Int
from torch import Tensor

from elmo_framework import DataError
from elmo_framework.data import (
    Counts,
    Indexer,
    TextBatch,
    Tokenizer,
    Vocabularies,
    Vocabulary,
    collate_text,
    input_words,
    only_key,
)
from elmo_framework.metrics import Metric
from elmo_framework.model import HeadTask, PredictionFormat

from .evalb import EvalbScores
from .trees import Constituent, ParsedSentence, Tree, as_brackets, chains, tree_lines

NO_LABEL = "NO-LABEL"
IGNORED = -100
"""The target of padding, and of a span whose label did not occur in training."""


@dataclass(frozen=True, slots=True)
class TreeBatch:
    """Sentences, padded to the longest.

    Attributes:
        text: the words.
        labels: those of the spans in the order of `span_places`, or `IGNORED`; None unless all
            sentences have a tree.
        examples: the sentences.
    """

    text: TextBatch
    labels: Int[Tensor, "batch spans"] | None
    examples: tuple[ParsedSentence, ...]

    @property
    def num_tokens(self) -> int:
        """The number of words, without padding."""
        return self.text.num_words

    @property
    def title(self) -> str:
        """The first sentence and the number of others, for messages."""
        return f"{' '.join(self.text.words[0])!r} and {len(self.examples) - 1} more"


def span_places(num_tokens: int) -> tuple[Int[Tensor, " spans"], Int[Tensor, " spans"]]:
    """Return the start and the end (exclusive) of all spans, sorted by start, then by end."""
    starts, ends = torch.triu_indices(num_tokens, num_tokens)
    return starts, ends + 1


@final
class ConstituencyTask(HeadTask[ParsedSentence, TreeBatch]):
    """Predicts the constituents of a sentence."""

    example_type = ParsedSentence
    metrics: ClassVar[Mapping[str, Metric]] = {"evalb": EvalbScores()}
    formats: ClassVar[Mapping[str, PredictionFormat]] = {"trees": tree_lines}
    input_keys = ("sentence", "tokens", "words")

    def counted_labels(self, example: ParsedSentence) -> Iterable[str]:
        """Return the label of each span of a sentence."""
        if example.tree is None:
            return ()
        labels = Counter(chains(example.tree.constituents).values())
        num_words = len(example.words)
        labels[NO_LABEL] = num_words * (num_words + 1) // 2 - labels.total()
        return labels.elements()

    def count(self, examples: Iterable[ParsedSentence]) -> Counts:
        """Count `words` and `labels`; there is always a label for spans without one."""
        counts = super().count(examples)
        return {**counts, "labels": Counter({NO_LABEL: 1, **counts["labels"]})}

    def collate(
        self,
        examples: Sequence[ParsedSentence],
        vocabularies: Vocabularies,
        indexers: Sequence[Indexer],
    ) -> TreeBatch:
        """Make a batch; labels that do not occur in the training data are ignored by the loss."""
        text = collate_text([example.words for example in examples], indexers)
        trees = [example.tree for example in examples if example.tree is not None]
        labels = None
        if len(trees) == len(examples):
            vocabulary, num_tokens = vocabularies.labels(), text.mask.shape[1]
            rows = [
                _targets(tree, len(example.words), num_tokens, vocabulary)
                for tree, example in zip(trees, examples, strict=True)
            ]
            labels = torch.stack(rows)
        return TreeBatch(text, labels, tuple(examples))

    def sentences(self, example: ParsedSentence) -> Iterable[Sequence[str]]:
        """Return the sentence, as a tuple of one."""
        return (example.words,)

    def gold(self, example: ParsedSentence) -> Tree:
        """Return the right tree."""
        if example.tree is None:
            raise DataError(f"a sentence without a tree cannot be scored: {example.words!r}")
        return example.tree

    def as_gold(self, prediction: Sequence[Constituent]) -> Tree:
        """Return a tree without parts of speech, so that punctuation counts."""
        return Tree(tuple(prediction))

    def example(self, inputs: Mapping[str, Any], tokenizer: Tokenizer) -> ParsedSentence:
        """Make an example of `{"sentence": "..."}` or of `{"tokens": [...]}` (or `words`)."""
        words = input_words(inputs, only_key(inputs, self.input_keys), tokenizer)
        return ParsedSentence(words, None)

    def to_json(self, prediction: Sequence[Constituent], example: ParsedSentence) -> dict[str, Any]:
        """Return the words, the constituents and the tree in brackets."""
        return {
            "words": list(example.words),
            "constituents": [constituent._asdict() for constituent in prediction],
            "trees": as_brackets(prediction, example),
        }


def _targets(
    tree: Tree, num_words: int, num_tokens: int, vocabulary: Vocabulary
) -> Int[Tensor, " spans"]:
    targets = torch.full((num_tokens, num_tokens + 1), vocabulary.id(NO_LABEL))
    targets[:, num_words + 1 :] = IGNORED
    for (start, end), label in chains(tree.constituents).items():
        targets[start, end] = vocabulary.id(label) if label in vocabulary else IGNORED
    starts, ends = span_places(num_tokens)
    return targets[starts, ends]
