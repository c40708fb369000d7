"""Constituency parsing as a task: each span of a sentence has a label, or none."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import shorten
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
    WhitespaceTokenizer,
    collate_text,
    input_words,
    only_key,
)
from elmo_framework.metrics import Metric
from elmo_framework.model import HeadTask, PredictionFormat

from .evalb import EvalbScores
from .trees import Constituent, ParsedSentence, Tree, as_brackets, chains, tree_lines

NO_LABEL = "NO-LABEL"
PARTS_OF_SPEECH = "pos"
"""The name of their vocabulary, here and in AllenNLP."""

TAGS_KEY = "pos_tags"
_TEXT_KEYS = ("sentence", "tokens", "words")
_SPACES = WhitespaceTokenizer()
_MAX_SHOWN = 60  # characters of a sentence in a message
IGNORED = -100
"""The target of padding, and of a span whose label did not occur in training."""


@dataclass(frozen=True, slots=True)
class TreeBatch:
    """Sentences, padded to the longest.

    Attributes:
        text: the words.
        tags: the ids of their parts of speech; None unless all sentences have them.
        labels: those of the spans in the order of `span_places`, or `IGNORED`; None unless all
            sentences have a tree.
        examples: the sentences.
    """

    text: TextBatch
    tags: Int[Tensor, "batch tokens"] | None
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
    """Predicts the constituents of a sentence.

    Args:
        reads_tags: whether an input must have parts of speech.
    """

    example_type = ParsedSentence
    metrics: ClassVar[Mapping[str, Metric]] = {"evalb": EvalbScores()}
    formats: ClassVar[Mapping[str, PredictionFormat]] = {"trees": tree_lines}
    input_keys = (*_TEXT_KEYS, TAGS_KEY)
    agreement_scores = ("evalb_f1_measure",)

    def __init__(self, *, reads_tags: bool = False) -> None:
        self.reads_tags = reads_tags

    def counted_labels(self, example: ParsedSentence) -> Iterable[str]:
        """Return the label of each span of a sentence."""
        if example.tree is None:
            return ()
        labels = Counter(chains(example.tree.constituents).values())
        num_words = len(example.words)
        labels[NO_LABEL] = num_words * (num_words + 1) // 2 - labels.total()
        return labels.elements()

    def count(self, examples: Iterable[ParsedSentence]) -> Counts:
        """Count `words`, `labels` and `pos`; there is always a label for spans without one."""
        tags = Counter[str]()
        counts = super().count(_counting_tags(examples, tags))
        labels = Counter({NO_LABEL: 1, **counts["labels"]})
        return {**counts, "labels": labels, PARTS_OF_SPEECH: tags}

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
        tags = None
        if all(len(example.tags) == len(example.words) for example in examples):
            tags = _tag_ids(examples, vocabularies.words(PARTS_OF_SPEECH), text.mask.shape[1])
        return TreeBatch(text, tags, labels, tuple(examples))

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
        """Make an example of `{"sentence": "..."}` or of `{"tokens": [...]}` (or `words`).

        `pos_tags` is a list with the part of speech of each word, or a string of them with spaces.
        """
        words = input_words(inputs, only_key(inputs, _TEXT_KEYS), tokenizer)
        tags = input_words(inputs, TAGS_KEY, _SPACES) if TAGS_KEY in inputs else ()
        if TAGS_KEY in inputs and len(tags) != len(words):
            raise DataError(
                f"{TAGS_KEY!r} has {len(tags)} of {len(words)} parts of speech for the words "
                f"{_shortened(words)}"
            )
        if self.reads_tags and words and not tags:
            raise missing_tags(words)
        return ParsedSentence(words, None, tags)

    def to_json(self, prediction: Sequence[Constituent], example: ParsedSentence) -> dict[str, Any]:
        """Return the words, their parts of speech if known, the constituents, and brackets."""
        return {
            "words": list(example.words),
            **({TAGS_KEY: list(example.tags)} if example.tags else {}),
            "constituents": [constituent._asdict() for constituent in prediction],
            "trees": as_brackets(prediction, example),
        }


def missing_tags(words: Sequence[str]) -> DataError:
    """Return the error for a sentence without the parts of speech that the model reads."""
    example = json.dumps({"tokens": ["It", "rains"], TAGS_KEY: ["PRP", "VBZ"]})
    return DataError(
        f"the model reads parts of speech, and {_shortened(words)} has none; pass them with the "
        f"words, as {example}, or pass trees"
    )


def _shortened(words: Sequence[str]) -> str:
    return repr(shorten(" ".join(words), _MAX_SHOWN))


def _counting_tags(
    examples: Iterable[ParsedSentence], tags: Counter[str]
) -> Iterator[ParsedSentence]:
    for example in examples:
        tags.update(example.tags)
        yield example


def _tag_ids(
    examples: Sequence[ParsedSentence], vocabulary: Vocabulary, num_tokens: int
) -> Int[Tensor, "batch tokens"]:
    ids = torch.zeros(len(examples), num_tokens, dtype=torch.int64)  # 0 is padding
    for row, example in zip(ids, examples, strict=True):
        row[: len(example.tags)] = torch.from_numpy(vocabulary.ids(example.tags))
    return ids


def _targets(
    tree: Tree, num_words: int, num_tokens: int, vocabulary: Vocabulary
) -> Int[Tensor, " spans"]:
    targets = torch.full((num_tokens, num_tokens + 1), vocabulary.id(NO_LABEL))
    targets[:, num_words + 1 :] = IGNORED
    for (start, end), label in chains(tree.constituents).items():
        targets[start, end] = vocabulary.id(label) if label in vocabulary else IGNORED
    starts, ends = span_places(num_tokens)
    return targets[starts, ends]
