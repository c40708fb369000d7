"""Heads and tasks that assign one label to each example."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from itertools import chain
from math import log
from typing import Any, ClassVar, TypeVar

from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from elmo_framework.data.labels import (
    Classification,
    LabeledBatch,
    classifications,
    label_ids,
    label_lines,
    required_label,
)
from elmo_framework.data.text import Indexer, collate_text
from elmo_framework.data.vocabulary import Vocabularies, Vocabulary
from elmo_framework.metrics.accuracy import Accuracy
from elmo_framework.metrics.confusion import Confusion
from elmo_framework.metrics.metric import Metric
from elmo_framework.model.head import Head, LogitsOutput, mean_logits
from elmo_framework.model.mistakes import Mistake, Piece
from elmo_framework.model.task import HeadTask, PredictionFormat

ExampleT = TypeVar("ExampleT")

_SMALLEST = 1e-12
"""The probability of a label for which no member of an ensemble voted."""


class LabelTask(HeadTask[ExampleT, LabeledBatch]):
    """A task whose examples have one or more sentences and one label each.

    A prediction is a `Classification`; its metrics are the accuracy and a confusion matrix. A
    member defines `sentences` and `label`.

    Attributes:
        sentence_keys: the names of the sentences in the JSON of a prediction.
    """

    metrics: ClassVar[Mapping[str, Metric]] = {"accuracy": Accuracy(), "confusion": Confusion()}
    formats: ClassVar[Mapping[str, PredictionFormat]] = {"glue": label_lines}
    sentence_keys: ClassVar[Sequence[str]] = ("words",)

    def collate(
        self, examples: Sequence[ExampleT], vocabularies: Vocabularies, indexers: Sequence[Indexer]
    ) -> LabeledBatch:
        sentences = [tuple(self.sentences(example)) for example in examples]
        text = collate_text([*chain(*zip(*sentences, strict=True))], indexers)
        last = (words for *_, words in sentences)
        labeled = zip(map(self.label, examples), last, strict=True)
        return LabeledBatch(text, label_ids(labeled, vocabularies.labels()), tuple(examples))

    def num_tokens(self, example: ExampleT) -> int:
        """Return the size of an example in a batch: its sentences are padded to the longest."""
        lengths = [len(words) for words in self.sentences(example)]
        return len(lengths) * max(lengths)

    @abstractmethod
    def label(self, example: ExampleT) -> str | None:
        """Return the label of an example; None if it is unknown."""

    def gold(self, example: ExampleT) -> Any:
        *_, words = self.sentences(example)
        return required_label(self.label(example), words)

    def as_gold(self, prediction: Classification) -> str:
        return prediction.label

    def mistake(self, prediction: Classification, example: ExampleT) -> Mistake | None:
        """Return a wrong label, by its loss."""
        gold = self.gold(example)
        if prediction.label == gold:
            return None
        right, wrong = (
            prediction.probabilities.get(each, 0.0) for each in (gold, prediction.label)
        )
        summary = f"{gold} {right:.2f}, predicted: {prediction.label} {wrong:.2f}"
        first, *others = (" ".join(words) for words in self.sentences(example))
        texts = [Piece(first), *(Piece(f" / {each}") for each in others)]
        return Mistake(-log(max(right, _SMALLEST)), summary, texts)

    def to_json(self, prediction: Classification, example: ExampleT) -> dict[str, Any]:
        """Return the words of each sentence, the label and the probability of each label.

        Calibrated probabilities are marked by `"calibrated": true`.
        """
        sentences = map(list, self.sentences(example))
        return {
            **dict(zip(self.sentence_keys, sentences, strict=True)),
            "label": prediction.label,
            "probabilities": dict(prediction.probabilities),
            **({"calibrated": True} if prediction.is_calibrated else {}),
        }


class Classifier(Head[LabeledBatch]):
    """Scores the labels of each example: p = softmax(logits).

    The loss is the mean of -log p over the examples of a batch.

    Args:
        vocabularies: counts of the training data, whose labels can be predicted.
    """

    def __init__(self, vocabularies: Vocabularies) -> None:
        super().__init__()
        self.labels: Vocabulary = vocabularies.required_labels()

    @property
    def num_labels(self) -> int:
        return len(self.labels)

    @abstractmethod
    def logits(self, batch: LabeledBatch) -> Float[Tensor, "batch labels"]:
        """Score the labels of each example."""

    def forward(self, batch: LabeledBatch) -> LogitsOutput:
        logits = self.logits(batch)
        if batch.labels is None:
            return LogitsOutput(loss=None, logits=logits)
        losses = F.cross_entropy(logits, batch.labels, reduction="none")
        return LogitsOutput(loss=losses.mean(), example_losses=losses, logits=logits)

    def mean_output(
        self, outputs: Sequence[LogitsOutput], heads: Sequence[Head[Any]]
    ) -> LogitsOutput:
        return LogitsOutput(loss=None, logits=mean_logits(outputs, heads))

    def label_scores(
        self, output: LogitsOutput, batch: LabeledBatch
    ) -> Float[Tensor, "batch labels"]:
        return output.logits

    def predict(self, output: LogitsOutput, batch: LabeledBatch) -> list[Classification]:
        return classifications(output.logits, self.labels, temperature=self.temperature)
