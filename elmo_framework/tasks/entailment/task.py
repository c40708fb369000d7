"""Tasks with pairs of sentences: entailment, and numbers such as relatedness."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, final

from rich.text import Text

from elmo_framework.data.inputs import input_words, require_object
from elmo_framework.data.tokenizer import Tokenizer
from elmo_framework.errors import DataError
from elmo_framework.model.classifier import LabelTask, TargetTask
from elmo_framework.model.regression import RegressionTask


@dataclass(frozen=True, slots=True)
class SentencePair:
    """A premise, a hypothesis, and optionally the label of their relation."""

    premise: tuple[str, ...]
    hypothesis: tuple[str, ...]
    label: str | None


@dataclass(frozen=True, slots=True)
class PairWithValue:
    """Two sentences, called as in `SentencePair`, and optionally a number to predict for them."""

    premise: tuple[str, ...]
    hypothesis: tuple[str, ...]
    value: float | None


PairT = TypeVar("PairT", SentencePair, PairWithValue)


class PairTask(TargetTask[PairT]):
    """A task with two sentences in each example."""

    input_keys = ("premise", "hypothesis")
    sentence_keys = input_keys

    def sentences(self, example: PairT) -> Iterable[Sequence[str]]:
        return example.premise, example.hypothesis

    def example(self, inputs: Mapping[str, Any], tokenizer: Tokenizer) -> PairT:
        """Make an example from `{"premise": ..., "hypothesis": ...}`, raw text or word lists."""
        require_object(inputs, self.input_keys)
        premise, hypothesis = (_words(inputs, key, tokenizer) for key in self.input_keys)
        pair: PairT = self.example_type(premise, hypothesis, None)
        return pair

    def pretty(self, prediction: Any, example: PairT) -> Text:
        premise, hypothesis = " ".join(example.premise), " ".join(example.hypothesis)
        target = self.in_color(prediction)
        return Text.assemble(target, "  ", premise, (" \N{RIGHTWARDS ARROW} ", "dim"), hypothesis)


@final
class EntailmentTask(PairTask[SentencePair], LabelTask[SentencePair]):
    """Predicts a label for each pair of sentences; evaluated by accuracy."""

    example_type = SentencePair

    def label(self, example: SentencePair) -> str | None:
        return example.label


@final
class PairRegressionTask(PairTask[PairWithValue], RegressionTask[PairWithValue]):
    """Predicts a number for each pair of sentences; evaluated by correlations and errors."""

    example_type = PairWithValue

    def target(self, example: PairWithValue) -> float | None:
        return example.value


def _words(inputs: Mapping[str, Any], key: str, tokenizer: Tokenizer) -> tuple[str, ...]:
    words = input_words(inputs, key, tokenizer)
    if not words:
        raise DataError(f"{key!r} has no words")
    return words
