"""Text classification: one of several classes for each text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, final

from elmo_framework.common.errors import DataError, allowed
from elmo_framework.data.text import Indexer
from elmo_framework.data.tokenizer import Tokenizer
from elmo_framework.data.vocabulary import Counts, Vocabularies
from elmo_framework.metrics.metric import Metric
from elmo_framework.model.task import HeadTask

from .batch import ClassificationBatch, ClassificationCollator
from .example import Classification, ClassifiedText
from .label_accuracy import LabelAccuracy

_KEYS = ("sentence", "text")


@final
class TextClassificationTask(HeadTask[ClassifiedText, ClassificationBatch]):
    """A class for each text; scored by the share of right ones.

    A prediction is a `Classification`.
    """

    example_type = ClassifiedText
    metrics: ClassVar[Mapping[str, Metric]] = {"accuracy": LabelAccuracy()}

    def count(self, examples: Iterable[ClassifiedText]) -> Counts:
        """Count `words` and `labels`."""
        words: Counter[str] = Counter()
        labels: Counter[str] = Counter()
        for example in examples:
            words.update(example.words)
            labels.update([example.label] if example.label is not None else ())
        return {"words": words, "labels": labels}

    def collator(
        self, vocabularies: Vocabularies, indexers: Sequence[Indexer]
    ) -> ClassificationCollator:
        """Return what makes batches."""
        return ClassificationCollator(vocabularies.labels(), tuple(indexers))

    def num_tokens(self, example: ClassifiedText) -> int:
        """Return the number of words."""
        return len(example.words)

    def gold(self, example: ClassifiedText) -> str:
        """Return the class of an example.

        Raises:
            DataError: it has none.
        """
        if example.label is None:
            raise DataError(f"a text without a label cannot be scored: {' '.join(example.words)!r}")
        return example.label

    def example(self, inputs: Mapping[str, Any], tokenizer: Tokenizer) -> ClassifiedText:
        """Make an example of `{"sentence": "..."}` or of `{"text": "..."}`."""
        given = [key for key in _KEYS if key in inputs]
        if len(given) != 1:
            found = ", ".join(map(repr, given or inputs)) or "none"
            known = allowed(next(iter(inputs), ""), _KEYS)
            raise DataError(f"expected one key that holds a text, found {found}; {known}")
        text = inputs[given[0]]
        if not isinstance(text, str):
            raise DataError(f"{given[0]!r} is {text!r}; expected a string")
        return ClassifiedText(tuple(tokenizer.words(text)), None)

    def to_json(self, prediction: Classification, example: ClassifiedText) -> dict[str, Any]:
        """Return the words, the class and the probability of each class."""
        return {
            "words": list(example.words),
            "label": prediction.label,
            "probabilities": prediction.probabilities,
        }
