"""The task of entailment: whether the first sentence of a pair implies the second."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from rich.text import Text

from elmo_framework.data.inputs import input_words, require_object
from elmo_framework.data.labels import Classification, label_in_color
from elmo_framework.data.tokenizer import Tokenizer
from elmo_framework.errors import DataError
from elmo_framework.model.classifier import LabelTask


@dataclass(frozen=True, slots=True)
class SentencePair:
    """A premise, a hypothesis, and optionally the label of their relation."""

    premise: tuple[str, ...]
    hypothesis: tuple[str, ...]
    label: str | None


@final
class EntailmentTask(LabelTask[SentencePair]):
    """Predicts a label for each pair of sentences; evaluated by accuracy."""

    example_type = SentencePair
    input_keys = ("premise", "hypothesis")
    sentence_keys = input_keys

    def sentences(self, example: SentencePair) -> Iterable[Sequence[str]]:
        return example.premise, example.hypothesis

    def label(self, example: SentencePair) -> str | None:
        return example.label

    def example(self, inputs: Mapping[str, Any], tokenizer: Tokenizer) -> SentencePair:
        """Make an example from `{"premise": ..., "hypothesis": ...}`, raw text or word lists."""
        require_object(inputs, self.input_keys)
        premise, hypothesis = (_words(inputs, key, tokenizer) for key in self.input_keys)
        return SentencePair(premise, hypothesis, None)

    def pretty(self, prediction: Classification, example: SentencePair) -> Text:
        premise, hypothesis = " ".join(example.premise), " ".join(example.hypothesis)
        label = label_in_color(prediction)
        return Text.assemble(label, "  ", premise, (" \N{RIGHTWARDS ARROW} ", "dim"), hypothesis)


def _words(inputs: Mapping[str, Any], key: str, tokenizer: Tokenizer) -> tuple[str, ...]:
    words = input_words(inputs, key, tokenizer)
    if not words:
        raise DataError(f"{key!r} has no words")
    return words
