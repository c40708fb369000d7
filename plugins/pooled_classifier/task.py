"""Text classification as a task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, final

from elmo_framework.data.inputs import given_words, only_key
from elmo_framework.data.labels import Classification, required_label
from elmo_framework.data.text import Indexer
from elmo_framework.data.tokenizer import Tokenizer
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.metrics.confusion import Confusion
from elmo_framework.metrics.metric import Metric
from elmo_framework.model.task import HeadTask

from .batch import ClassificationBatch, ClassificationCollator
from .example import ClassifiedText


@final
class TextClassificationTask(HeadTask[ClassifiedText, ClassificationBatch]):
    """Predicts one class per text, scored by accuracy; a prediction is a `Classification`."""

    example_type = ClassifiedText
    metrics: ClassVar[Mapping[str, Metric]] = {"confusion": Confusion()}
    input_keys: ClassVar[Sequence[str]] = ("sentence", "text")

    def collator(
        self, vocabularies: Vocabularies, indexers: Sequence[Indexer]
    ) -> ClassificationCollator:
        """Return the collator."""
        return ClassificationCollator(vocabularies.labels(), tuple(indexers))

    def num_tokens(self, example: ClassifiedText) -> int:
        """Return the number of words."""
        return len(example.words)

    def sentences(self, example: ClassifiedText) -> Iterable[Sequence[str]]:
        """Return the text, as a tuple of one."""
        return (example.words,)

    def label(self, example: ClassifiedText) -> str | None:
        """Return the class to count."""
        return example.label

    def gold(self, example: ClassifiedText) -> str:
        """Return the class of an example.

        Raises:
            DataError: it has none.
        """
        return required_label(example.label, example.words)

    def example(self, inputs: Mapping[str, Any], tokenizer: Tokenizer) -> ClassifiedText:
        """Make an example of `{"sentence": ...}` or `{"text": ...}`, with raw text or its words."""
        key = only_key(inputs, self.input_keys)
        return ClassifiedText(given_words(inputs, key, tokenizer), None)

    def to_json(self, prediction: Classification, example: ClassifiedText) -> dict[str, Any]:
        """Return the words, the class and the probability of each class."""
        return {
            "words": list(example.words),
            "label": prediction.label,
            "probabilities": dict(prediction.probabilities),
        }
