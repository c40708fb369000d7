"""Heads and tasks with one target for each example, and those whose target is one label."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from math import log
from typing import Annotated, Any, ClassVar, TypeVar

from annotated_types import Ge, Lt
from jaxtyping import Float
from rich.text import Text
from torch import Tensor
from torch.nn import functional as F

from elmo_framework.data.labels import (
    Classification,
    LabeledBatch,
    classifications,
    label_ids,
    label_in_color,
    label_lines,
    required_target,
)
from elmo_framework.data.text import Indexer, collate_text
from elmo_framework.data.vocabulary import Vocabularies, Vocabulary
from elmo_framework.errors import RunError, shown
from elmo_framework.metrics.accuracy import Accuracy
from elmo_framework.metrics.confusion import Confusion
from elmo_framework.metrics.label_f1 import LabelF1
from elmo_framework.metrics.metric import Metric
from elmo_framework.model.class_weights import ClassWeights, weights_of_labels
from elmo_framework.model.head import Head, LogitsOutput, mean_logits
from elmo_framework.model.initializer import Initializers
from elmo_framework.model.mistakes import Mistake, Piece
from elmo_framework.model.regularizer import Regularizers
from elmo_framework.model.task import HeadTask, PredictionFormat

ExampleT = TypeVar("ExampleT")

_SMALLEST = 1e-12
"""The probability of a label for which no member of an ensemble voted."""


class TargetTask(HeadTask[ExampleT, LabeledBatch]):
    """A task whose examples have one or more sentences, and one target: a label or a number.

    A member defines `sentences` and the target.
    """

    def collate(
        self, examples: Sequence[ExampleT], vocabularies: Vocabularies, indexers: Sequence[Indexer]
    ) -> LabeledBatch:
        sentences = [tuple(self.sentences(example)) for example in examples]
        groups = list(zip(*sentences, strict=True))
        text = collate_text([*chain(*groups)], indexers, num_groups=len(groups))
        last = (words for *_, words in sentences)
        targets = zip(map(self.target, examples), last, strict=True)
        return LabeledBatch(text, self.target_tensor(targets, vocabularies), tuple(examples))

    def num_tokens(self, example: ExampleT) -> int:
        """Return the size of an example in a batch: its sentences are padded to the longest."""
        lengths = [len(words) for words in self.sentences(example)]
        return len(lengths) * max(lengths)

    @abstractmethod
    def target(self, example: ExampleT) -> Any:
        """Return what is to be predicted for an example; None if it is unknown."""

    @abstractmethod
    def target_tensor(
        self, targets: Iterable[tuple[Any, Sequence[str]]], vocabularies: Vocabularies
    ) -> Tensor | None:
        """Return the targets of a batch, each with its words; None if one of them is unknown.

        Raises:
            DataError: a label was not seen in training.
        """

    @abstractmethod
    def in_color(self, prediction: Any) -> Text:
        """Return a prediction without its sentences, for display in a terminal."""

    def gold(self, example: ExampleT) -> Any:
        *_, words = self.sentences(example)
        return required_target(self.target(example), words)

    def sentences_json(self, example: ExampleT) -> dict[str, Any]:
        """Return the words of each sentence by its name."""
        return dict(zip(self.sentence_keys, map(list, self.sentences(example)), strict=True))


class LabelTask(TargetTask[ExampleT]):
    """A task whose examples have one or more sentences and one label each.

    A prediction is a `Classification`; its metrics are the accuracy, the scores of each label and
    a confusion matrix. A member defines `sentences` and `label`.
    """

    metrics: ClassVar[Mapping[str, Metric]] = {
        "accuracy": Accuracy(),
        "label_f1": LabelF1(),
        "confusion": Confusion(),
    }
    formats: ClassVar[Mapping[str, PredictionFormat]] = {"glue": label_lines}

    @abstractmethod
    def label(self, example: ExampleT) -> str | None:
        """Return the label of an example; None if it is unknown."""

    def target(self, example: ExampleT) -> str | None:
        return self.label(example)

    def target_tensor(
        self, targets: Iterable[tuple[Any, Sequence[str]]], vocabularies: Vocabularies
    ) -> Tensor | None:
        return label_ids(targets, vocabularies.labels())

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
        return {
            **self.sentences_json(example),
            "label": prediction.label,
            "probabilities": dict(prediction.probabilities),
            **({"calibrated": True} if prediction.is_calibrated else {}),
        }

    def in_color(self, prediction: Classification) -> Text:
        return label_in_color(prediction)


class TargetHead(Head[LabeledBatch]):
    """Scores each example with one or several numbers, from which the target is predicted.

    Networks inherit it to define `logits`, kinds of targets to define the rest; a head inherits
    from one of each.

    Args:
        vocabularies: counts of the training data.
    """

    def __init__(self, vocabularies: Vocabularies) -> None:
        super().__init__()

    @property
    @abstractmethod
    def num_outputs(self) -> int:
        """The number of scores of an example."""

    @abstractmethod
    def logits(self, batch: LabeledBatch) -> Float[Tensor, "batch outputs"]:
        """Score each example."""

    def checked_logits(self, batch: LabeledBatch) -> Float[Tensor, "batch outputs"]:
        """Return the scores of each example.

        Raises:
            RunError: `logits` returned something of another shape.
        """
        logits: object = self.logits(batch)
        expected = len(batch.examples), self.num_outputs
        if isinstance(logits, Tensor) and logits.shape == expected:
            return logits
        returned = (
            f"a tensor of {tuple(logits.shape)}" if isinstance(logits, Tensor) else shown(logits)
        )
        raise RunError(
            f"{type(self).__name__}.logits returned {returned}; expected a tensor of {expected}: "
            "the examples of the batch, and the scores of each"
        )


class LabelHead(TargetHead):
    """Scores each label of the training data.

    Args:
        vocabularies: counts of the training data, whose labels can be predicted.
    """

    def __init__(self, vocabularies: Vocabularies) -> None:
        super().__init__(vocabularies)
        self.labels: Vocabulary = vocabularies.required_labels()

    @property
    def num_outputs(self) -> int:
        return len(self.labels)

    def mean_output(
        self, outputs: Sequence[LogitsOutput], heads: Sequence[Head[Any]]
    ) -> LogitsOutput:
        return LogitsOutput(loss=None, logits=mean_logits(outputs, heads))


class Classifier(LabelHead):
    """Scores the labels of each example: p = softmax(logits).

    The loss is the mean of -log p over the examples of a batch. With `class_weights` or
    `label_smoothing` it is the weighted or smoothed one, and the reported `loss` remains the mean
    of -log p, so that it can be compared between runs.

    Args:
        vocabularies: counts of the training data, whose labels can be predicted.
        class_weights: what the loss of an example is multiplied with, by its label: `{'rare': 5}`,
            where other labels have weight 1. `balanced` is n / (k n_label) for n examples of k
            labels, of which n_label have this one: all labels then count the same.
        label_smoothing: the part of the target that is distributed evenly over all labels
            (Szegedy et al. 2016).
    """

    _class_weights: Tensor | None
    _label_smoothing = 0.0

    def __init__(self, vocabularies: Vocabularies) -> None:
        super().__init__(vocabularies)
        self._vocabularies = vocabularies
        # The counts of the run determine them, and files of earlier runs have none.
        self.register_buffer("_class_weights", None, persistent=False)

    def post_init(
        self,
        initializer: Initializers | None = None,
        regularizer: Regularizers | None = None,
        metrics: list[Metric] | None = None,
        class_weights: ClassWeights | None = None,
        label_smoothing: Annotated[float, Ge(0), Lt(1)] = 0.0,
    ) -> None:
        """Apply the initializers and regularizers of a config, its metrics, and its weights.

        Raises:
            ConfigError: as of `Model.post_init`.
            ValueError: as of `Head.post_init`; or a weight is for a label that does not exist.
        """
        super().post_init(initializer, regularizer, metrics)
        self._class_weights = weights_of_labels(class_weights, self._vocabularies)
        self._label_smoothing = label_smoothing

    @property
    def num_labels(self) -> int:
        return len(self.labels)

    def forward(self, batch: LabeledBatch) -> LogitsOutput:
        logits = self.checked_logits(batch)
        if batch.labels is None:
            return LogitsOutput(loss=None, logits=logits)
        losses = trained = F.cross_entropy(logits, batch.labels, reduction="none")
        if self._class_weights is not None or self._label_smoothing:
            trained = F.cross_entropy(
                logits,
                batch.labels,
                weight=self._class_weights,
                label_smoothing=self._label_smoothing,
                reduction="none",
            )
        return LogitsOutput(loss=trained.mean(), example_losses=losses, logits=logits)

    def label_scores(
        self, output: LogitsOutput, batch: LabeledBatch
    ) -> Float[Tensor, "batch labels"]:
        return output.logits

    def predict(self, output: LogitsOutput, batch: LabeledBatch) -> list[Classification]:
        return classifications(output.logits, self.labels, temperature=self.temperature)
