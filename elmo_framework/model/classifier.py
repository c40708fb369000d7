"""A head that chooses one label for each example."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from elmo_framework.data.labels import Classification, classifications
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.model.head import ExampleBatch, Head, HeadOutput


@dataclass(frozen=True, slots=True)
class ClassifierOutput(HeadOutput):
    """What a classifier computes for a batch.

    Attributes:
        logits: the score of each label.
    """

    logits: Float[Tensor, "batch labels"]


class LabelledBatch(ExampleBatch, Protocol):
    """A batch whose examples may have labels."""

    @property
    def labels(self) -> Tensor | None:
        """Their ids, "batch"; None unless all of them are known."""


BatchT = TypeVar("BatchT", bound=LabelledBatch)


class Classifier(Head[BatchT], Generic[BatchT]):
    """Scores the labels of each example: p = softmax(logits).

    The loss is the mean of -log p over the examples of a batch.

    Args:
        vocabularies: what was counted in the training data; its labels can be predicted.
    """

    def __init__(self, vocabularies: Vocabularies) -> None:
        super().__init__()
        self._labels = vocabularies.required_labels()

    @property
    def num_labels(self) -> int:
        """How many labels there are."""
        return len(self._labels)

    @abstractmethod
    def logits(self, batch: BatchT) -> Float[Tensor, "batch labels"]:
        """Score the labels of each example."""

    def forward(self, batch: BatchT) -> ClassifierOutput:
        """Score the labels of each example, and the loss where the right ones are known."""
        logits = self.logits(batch)
        if batch.labels is None:
            return ClassifierOutput(loss=None, example_losses=None, logits=logits)
        losses = F.cross_entropy(logits, batch.labels, reduction="none")
        return ClassifierOutput(loss=losses.mean(), example_losses=losses, logits=logits)

    def predict(self, output: ClassifierOutput, batch: BatchT) -> list[Classification]:
        """Return the most probable label of each example, and the probabilities of all."""
        return classifications(output.logits, self._labels)
