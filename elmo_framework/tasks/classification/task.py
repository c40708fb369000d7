"""What text classification is: a text in, one of several labels out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, final

from rich.text import Text

from elmo_framework.data.inputs import given_words, only_key
from elmo_framework.data.labels import (
    Classification,
    label_in_colour,
    label_lines,
    required_label,
)
from elmo_framework.data.text import Indexer
from elmo_framework.data.tokenizer import Tokenizer
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.metrics.accuracy import TopAccuracy
from elmo_framework.metrics.confusion import Confusion
from elmo_framework.metrics.metric import Metric
from elmo_framework.model.task import Collator, HeadTask, PredictionFormat
from elmo_framework.tasks.classification.batch import ClassificationBatch, ClassificationCollator
from elmo_framework.tasks.classification.example import ClassifiedText


@final
class TextClassificationTask(HeadTask[ClassifiedText, ClassificationBatch]):
    """A label for each text; scored by the share of right ones, and of right ones among three.

    A prediction is a `Classification`.
    """

    example_type = ClassifiedText
    metrics: ClassVar[Mapping[str, Metric]] = {"confusion": Confusion(), "top": TopAccuracy(3)}
    formats: ClassVar[Mapping[str, PredictionFormat]] = {"tsv": label_lines}
    input_keys: ClassVar[Sequence[str]] = ("sentence", "text", "tokens", "words")

    def collator(self, vocabularies: Vocabularies, indexers: Sequence[Indexer]) -> Collator:
        """Return what makes batches."""
        return ClassificationCollator(vocabularies.labels(), tuple(indexers))

    def num_tokens(self, example: ClassifiedText) -> int:
        """Return the number of words."""
        return len(example.words)

    def sentences(self, example: ClassifiedText) -> Iterable[Sequence[str]]:
        """Return the one text."""
        return (example.words,)

    def label(self, example: ClassifiedText) -> str | None:
        """Return the label."""
        return example.label

    def gold(self, example: ClassifiedText) -> str:
        """Return the label of an example.

        Raises:
            DataError: it has none.
        """
        return required_label(example.label, example.words)

    def example(self, inputs: Mapping[str, Any], tokenizer: Tokenizer) -> ClassifiedText:
        """Make an example of raw text or of a list of words, under one of four keys.

        They are `sentence`, `text`, `tokens` and `words`.
        """
        key = only_key(inputs, self.input_keys)
        return ClassifiedText(given_words(inputs, key, tokenizer), None)

    def to_json(self, prediction: Classification, example: ClassifiedText) -> dict[str, Any]:
        """Return the words, the label and the probability of each label."""
        return {
            "words": list(example.words),
            "label": prediction.label,
            "probabilities": dict(prediction.probabilities),
        }

    def pretty(self, prediction: Classification, example: ClassifiedText) -> Text:
        """Return the label, its probability and the text."""
        return Text.assemble(label_in_colour(prediction), "  ", " ".join(example.words))
