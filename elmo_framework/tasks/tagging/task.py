"""Sequence tagging: predict a tag for each word of a sentence."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
import torch
from jaxtyping import Int
from rich.text import Text
from torch import Tensor

from elmo_framework.console import plural
from elmo_framework.data.annotation import Annotation
from elmo_framework.data.formats.columns import one_cell
from elmo_framework.data.highlighting import colored
from elmo_framework.data.inputs import input_words, only_key
from elmo_framework.data.labels import LabeledBatch, excerpt, known_ids
from elmo_framework.data.tagging import (
    Scheme,
    all_tags,
    beginnings,
    conlleval_tags,
    marks_spans,
    scheme_of,
    span_objects,
    spans,
    strays,
    tag_annotations,
)
from elmo_framework.data.text import Indexer, TextBatch, collate_text
from elmo_framework.data.tokenizer import Tokenizer
from elmo_framework.data.vocabulary import Counts, Vocabularies, Vocabulary
from elmo_framework.errors import DataError
from elmo_framework.metrics.metric import Metric
from elmo_framework.metrics.span_f1 import SpanF1
from elmo_framework.model.mistakes import Mistake, span_pieces
from elmo_framework.model.task import HeadTask, PredictionFormat, RecordFormat
from elmo_framework.tasks.tagging.conllu import conllu_lines

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TaggedSentence:
    """A sentence, and optionally a tag for each word.

    Attributes:
        words: of the sentence.
        tags: one for each word; None if unknown.
        comments: lines of its file before the words, in CoNLL-U; the fields of its input have the
            values of those with a key.
        skipped: other lines of its file, each with the number of words before it: the multiword
            tokens and the empty nodes of CoNLL-U.
    """

    words: tuple[str, ...]
    tags: tuple[str, ...] | None
    comments: tuple[str, ...] = ()
    skipped: tuple[tuple[int, str], ...] = ()

    def __post_init__(self) -> None:
        if self.tags is not None and len(self.tags) != len(self.words):
            words, tags = plural(len(self.words), "word"), plural(len(self.tags), "tag")
            raise ValueError(f"{words} with {tags}")


def conll_columns(
    predictions: Iterable[tuple[Sequence[str], TaggedSentence]],
) -> Iterator[str]:
    """Write lines of word, gold tag and predicted tag, with a blank line after each sentence.

    conlleval's scores of this file equal those of `SpanF1`. For a sentence without gold tags only
    the words and the predicted tags are written.
    """
    for tags, example in predictions:
        gold = [] if example.tags is None else [conlleval_tags(example.tags, tags)]
        rows = zip(example.words, *gold, conlleval_tags(tags, example.tags or ()), strict=True)
        yield "".join(f"{' '.join(map(one_cell, row))}\n" for row in rows) + "\n"


@final
class TaggingTask(HeadTask[TaggedSentence, LabeledBatch]):
    """Predicts a tag for each word; evaluated by the spans that the tags mark, and by accuracy.

    A prediction is the sequence of tags of a sentence.
    """

    example_type = TaggedSentence
    metrics: ClassVar[Mapping[str, Metric]] = {"span_f1": SpanF1()}
    formats: ClassVar[Mapping[str, PredictionFormat]] = {"conll": conll_columns}
    record_formats: ClassVar[Mapping[str, RecordFormat]] = {"conllu": conllu_lines}
    input_keys = ("sentence", "tokens", "words")
    agreement_scores = ("f1-measure-overall", "accuracy")

    def count(self, examples: Iterable[TaggedSentence]) -> Counts:
        """Count `words`, `labels`, and as `beginnings` the tags from which the scheme follows.

        The other tags of each observed label are added with count 0: a small data set may lack
        spans of some length.
        """
        words, labels, begun = (Counter[str]() for _ in range(3))
        for example in examples:
            words.update(example.words)
            labels.update(example.tags or ())
            begun.update(beginnings(example.tags or ()))
        scheme = scheme_of(labels, begun)
        if scheme is not None:
            for tag in all_tags(labels, scheme):
                labels.setdefault(tag, 0)
            _warn_of_strays(begun, scheme)
        return {"words": words, "labels": labels, "beginnings": begun}

    def collate(
        self,
        examples: Sequence[TaggedSentence],
        vocabularies: Vocabularies,
        indexers: Sequence[Indexer],
    ) -> LabeledBatch:
        text = collate_text([example.words for example in examples], indexers)
        return LabeledBatch(text, _ids(examples, text, vocabularies.labels()), tuple(examples))

    def sentences(self, example: TaggedSentence) -> Iterable[Sequence[str]]:
        return (example.words,)

    def gold(self, example: TaggedSentence) -> tuple[str, ...]:
        if example.tags is None:
            raise DataError(f"a sentence without tags cannot be scored: {excerpt(example.words)}")
        return example.tags

    def comparable_gold(self, example: TaggedSentence) -> object:
        """Return the spans of the tags, whatever their scheme; the tags if there are none."""
        tags = self.gold(example)
        return tuple(map(tuple, spans(tags))) or tags

    def example(self, inputs: Mapping[str, Any], tokenizer: Tokenizer) -> TaggedSentence:
        """Make an example of `{"sentence": "..."}` or of `{"tokens": [...]}` (or `words`)."""
        key = only_key(inputs, self.input_keys)
        return TaggedSentence(input_words(inputs, key, tokenizer), None)

    def to_json(self, prediction: Sequence[str], example: TaggedSentence) -> dict[str, Any]:
        return {
            "words": list(example.words),
            "tags": list(prediction),
            "spans": span_objects(prediction, example.words),
        }

    def annotations(
        self, prediction: Sequence[str], example: TaggedSentence
    ) -> Sequence[Annotation]:
        return tag_annotations(prediction)

    def annotated_objects(self, output: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
        return output["spans"] if marks_spans(output["tags"]) else []

    def mistake(self, prediction: Sequence[str], example: TaggedSentence) -> Mistake | None:
        """Return wrong, missed and additional spans; the words of other tags are spans too."""
        gold, predicted = ({*tag_annotations(tags)} for tags in (self.gold(example), prediction))
        if gold == predicted:
            return None
        return Mistake(len(gold ^ predicted), "", span_pieces(example.words, gold, predicted))

    def pretty(self, prediction: Sequence[str], example: TaggedSentence) -> Text:
        return colored(example.words, prediction)


def _ids(
    examples: Sequence[TaggedSentence], text: TextBatch, labels: Vocabulary
) -> Int[Tensor, "batch tokens"] | None:
    padded = np.zeros(text.mask.shape, dtype=np.int64)
    for row, example in zip(padded, examples, strict=True):
        if example.tags is None:
            return None
        row[: len(example.tags)] = known_ids(example.tags, labels, example.words)
    return torch.from_numpy(padded)


def _warn_of_strays(begun: Mapping[str, int], scheme: Scheme) -> None:
    if stray_tags := strays(begun, scheme):
        listed = ", ".join(f"{tag} (seen {begun[tag]}x)" for tag in stray_tags)
        _log.warning("the tags are of the scheme %s, which begins no span with %s", scheme, listed)
