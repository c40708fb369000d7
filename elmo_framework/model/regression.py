"""Heads and tasks that predict a number for each example."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar, final

import torch
from jaxtyping import Float
from rich.text import Text
from torch import Tensor

from elmo_framework.data.labels import LabeledBatch
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.errors import RunError
from elmo_framework.metrics.metric import Metric
from elmo_framework.metrics.regression import RegressionScores
from elmo_framework.model.classifier import TargetHead, TargetTask
from elmo_framework.model.head import Head, mean
from elmo_framework.model.model import ModelOutput
from elmo_framework.model.task import PredictionFormat

ExampleT = TypeVar("ExampleT")


@final
@dataclass(frozen=True, slots=True)
class ValuesOutput(ModelOutput):
    """Output of a head that predicts numbers.

    Attributes:
        values: a number for each example.
    """

    values: Float[Tensor, " batch"]


def value_lines(predictions: Iterable[tuple[float, Any]]) -> Iterator[str]:
    """Write numbers as GLUE's server reads them: a table of indices, from 0, and numbers."""
    yield "index\tprediction\n"
    for index, (prediction, _) in enumerate(predictions):
        yield f"{index}\t{prediction:.6g}\n"


class RegressionTask(TargetTask[ExampleT]):
    """A task whose examples have one or more sentences, and a number to predict.

    A prediction is a float; its metrics are correlations and errors.
    """

    metrics: ClassVar[Mapping[str, Metric]] = {"regression": RegressionScores()}
    formats: ClassVar[Mapping[str, PredictionFormat]] = {"glue": value_lines}

    def counted_labels(self, example: ExampleT) -> Iterable[str]:
        """Return the number as text: the head needs the mean of the training data."""
        value = self.target(example)
        return () if value is None else (repr(float(value)),)

    def target_tensor(
        self, targets: Iterable[tuple[Any, Sequence[str]]], vocabularies: Vocabularies
    ) -> Tensor | None:
        values = [target for target, _ in targets]
        return None if None in values else torch.tensor(values)

    def to_json(self, prediction: float, example: ExampleT) -> dict[str, Any]:
        """Return the words of each sentence and the number."""
        return {**self.sentences_json(example), "value": prediction}

    def in_color(self, prediction: float) -> Text:
        return Text(f"{prediction:.4g}", "bold green")


class RegressionHead(TargetHead):
    """Predicts a number for each example: mean + deviation * score.

    Mean and standard deviation are those of the numbers of the training data, so that the score
    has the same scale for all data. The loss is the mean squared error in units of the standard
    deviation; the score `mse` is in those of the data.

    Args:
        vocabularies: counts of the training data.
    """

    num_outputs = 1

    def __init__(self, vocabularies: Vocabularies) -> None:
        super().__init__(vocabularies)
        self._mean, self._deviation = _mean_and_deviation(vocabularies)

    def forward(self, batch: LabeledBatch) -> ValuesOutput:
        scores = self.checked_logits(batch).squeeze(1).float()
        values = self._mean + self._deviation * scores
        if batch.labels is None:
            return ValuesOutput(loss=None, values=values)
        losses = (scores - (batch.labels - self._mean) / self._deviation) ** 2
        return ValuesOutput(loss=losses.mean(), example_losses=losses, values=values)

    def require_vote(self) -> None:
        raise RunError("numbers are not combined by vote; leave out --combine for their mean")

    def mean_output(
        self, outputs: Sequence[ValuesOutput], heads: Sequence[Head[Any]]
    ) -> ValuesOutput:
        return ValuesOutput(loss=None, values=mean([output.values for output in outputs]))

    def predict(self, output: ValuesOutput, batch: LabeledBatch) -> list[float]:
        values: list[float] = output.values.tolist()
        return values


def _mean_and_deviation(vocabularies: Vocabularies) -> tuple[float, float]:
    """Return the mean and the standard deviation of the training data; 1 if all are equal."""
    if vocabularies.is_assumed:
        return 0.0, 1.0
    counts = {float(value): count for value, count in vocabularies.counted("labels").items()}
    total = sum(counts.values())
    if not total:
        raise ValueError("the training data has no numbers to predict")
    if len(counts) == 1:
        # A mean of equal numbers may be rounded, so that they seem to differ from it.
        return next(iter(counts)), 1.0
    mean_value = math.fsum(value * count for value, count in counts.items()) / total
    squares = (count * (value - mean_value) ** 2 for value, count in counts.items())
    return mean_value, math.sqrt(math.fsum(squares) / total) or 1.0
