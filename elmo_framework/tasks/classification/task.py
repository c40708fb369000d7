"""The task of text classification: one label for each text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, final

from rich.text import Text

from elmo_framework.data.inputs import input_words, only_key
from elmo_framework.data.labels import Classification, label_in_color
from elmo_framework.data.tokenizer import Tokenizer
from elmo_framework.metrics.accuracy import TopAccuracy
from elmo_framework.metrics.metric import Metric
from elmo_framework.model.classifier import LabelTask


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


@final
class TextClassificationTask(LabelTask[ClassifiedText]):
    """Predicts a label for each text; evaluated by accuracy and top-3 accuracy."""

    example_type = ClassifiedText
    metrics: ClassVar[Mapping[str, Metric]] = {**LabelTask.metrics, "top": TopAccuracy(3)}
    input_keys = ("sentence", "text", "tokens", "words")

    def sentences(self, example: ClassifiedText) -> Iterable[Sequence[str]]:
        return (example.words,)

    def sampling_unit(self, example: ClassifiedText) -> str:
        """Return the whole text, so that no phrase of a sentence of the test data is trained on."""
        return " ".join(example.whole or example.words)

    def label(self, example: ClassifiedText) -> str | None:
        return example.label

    def example(self, inputs: Mapping[str, Any], tokenizer: Tokenizer) -> ClassifiedText:
        """Make an example from raw text or a list of words, under one of four keys.

        The keys are `sentence`, `text`, `tokens` and `words`.
        """
        key = only_key(inputs, self.input_keys)
        return ClassifiedText(input_words(inputs, key, tokenizer), None)

    def pretty(self, prediction: Classification, example: ClassifiedText) -> Text:
        return Text.assemble(label_in_color(prediction), "  ", " ".join(example.words))
