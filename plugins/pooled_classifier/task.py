"""Text classification as a task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, final

from elmo_framework.data import Tokenizer, input_words, only_key
from elmo_framework.model import LabelTask

from .example import ClassifiedText


@final
class TextClassificationTask(LabelTask[ClassifiedText]):
    """Predicts one class per text, scored by accuracy; a prediction is a `Classification`."""

    example_type = ClassifiedText
    input_keys = ("sentence", "text")

    def sentences(self, example: ClassifiedText) -> Iterable[Sequence[str]]:
        """Return the text, as a tuple of one."""
        return (example.words,)

    def label(self, example: ClassifiedText) -> str | None:
        """Return the class to count."""
        return example.label

    def example(self, inputs: Mapping[str, Any], tokenizer: Tokenizer) -> ClassifiedText:
        """Make an example of `{"sentence": ...}` or `{"text": ...}`, with raw text or its words."""
        key = only_key(inputs, self.input_keys)
        return ClassifiedText(input_words(inputs, key, tokenizer), None)
