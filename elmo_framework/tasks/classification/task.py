"""Tasks with texts: one label, several labels or a number for each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar, final

from rich.text import Text

from elmo_framework.data.inputs import input_words, only_key
from elmo_framework.data.tokenizer import Tokenizer
from elmo_framework.metrics.accuracy import TopAccuracy
from elmo_framework.metrics.metric import Metric
from elmo_framework.model.classifier import LabelTask, TargetTask
from elmo_framework.model.multi_label import MultiLabelTask
from elmo_framework.model.regression import RegressionTask


@dataclass(frozen=True, slots=True)
class ClassifiedText:
    """A text or a part of one, and optionally its label.

    Attributes:
        words: of the text.
        label: of the text; None if unknown.
        whole: the words of the text that a phrase or a truncated text is a part of.
    """

    words: tuple[str, ...]
    label: str | None
    whole: tuple[str, ...] | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class MultiLabelText:
    """A text as of `ClassifiedText`, and optionally its labels, of which there may be none."""

    words: tuple[str, ...]
    labels: tuple[str, ...] | None
    whole: tuple[str, ...] | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class TextWithValue:
    """A text as of `ClassifiedText`, and optionally the number to predict for it."""

    words: tuple[str, ...]
    value: float | None
    whole: tuple[str, ...] | None = field(default=None, repr=False, compare=False)


TextT = TypeVar("TextT", ClassifiedText, MultiLabelText, TextWithValue)


class TextTask(TargetTask[TextT]):
    """A task with one text in each example."""

    input_keys = ("sentence", "text", "tokens", "words")

    def sentences(self, example: TextT) -> Iterable[Sequence[str]]:
        return (example.words,)

    def sampling_unit(self, example: TextT) -> str:
        """Return the whole text, so that no phrase of a sentence of the test data is trained on."""
        return " ".join(example.whole or example.words)

    def example(self, inputs: Mapping[str, Any], tokenizer: Tokenizer) -> TextT:
        """Make an example from raw text or a list of words, under one of four keys.

        The keys are `sentence`, `text`, `tokens` and `words`.
        """
        key = only_key(inputs, self.input_keys)
        text: TextT = self.example_type(input_words(inputs, key, tokenizer), None)
        return text

    def pretty(self, prediction: Any, example: TextT) -> Text:
        return Text.assemble(self.in_color(prediction), "  ", " ".join(example.words))


@final
class TextClassificationTask(TextTask[ClassifiedText], LabelTask[ClassifiedText]):
    """Predicts a label for each text; evaluated by accuracy and top-3 accuracy."""

    example_type = ClassifiedText
    metrics: ClassVar[Mapping[str, Metric]] = {**LabelTask.metrics, "top": TopAccuracy(3)}

    def label(self, example: ClassifiedText) -> str | None:
        return example.label


@final
class MultiLabelTextTask(TextTask[MultiLabelText], MultiLabelTask[MultiLabelText]):
    """Predicts any number of labels for each text; evaluated by exact matches and F1."""

    example_type = MultiLabelText

    def target(self, example: MultiLabelText) -> tuple[str, ...] | None:
        return example.labels


@final
class TextRegressionTask(TextTask[TextWithValue], RegressionTask[TextWithValue]):
    """Predicts a number for each text; evaluated by correlations and errors."""

    example_type = TextWithValue

    def target(self, example: TextWithValue) -> float | None:
        return example.value
