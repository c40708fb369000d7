"""Heads and tasks that assign several labels, or none, to each example."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, TypeVar

import numpy as np
import torch
from annotated_types import Gt, Lt
from rich.text import Text
from torch import Tensor
from torch.nn import functional as F

from elmo_framework.data.labels import (
    LabeledBatch,
    LabelSet,
    known_ids,
    label_in_color,
    label_sets,
)
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.metrics.calibration import ScoredItems, ScoredLabels
from elmo_framework.metrics.label_f1 import ExactMatch, LabelF1
from elmo_framework.metrics.metric import Metric
from elmo_framework.model.classifier import LabelHead, TargetTask
from elmo_framework.model.head import LogitsOutput
from elmo_framework.model.initializer import Initializers
from elmo_framework.model.regularizer import Regularizers

ExampleT = TypeVar("ExampleT")


class MultiLabelTask(TargetTask[ExampleT]):
    """A task whose examples have one or more sentences and any number of labels each.

    A prediction is a `LabelSet`; its metrics are the fraction of exact matches, and the scores of
    each label.
    """

    metrics: ClassVar[Mapping[str, Metric]] = {
        "exact_match": ExactMatch(),
        "label_f1": LabelF1(),
    }
    agreement_scores = ("f1-measure-micro",)

    def counted_labels(self, example: ExampleT) -> Iterable[str]:
        return self.target(example) or ()

    def target_tensor(
        self, targets: Iterable[tuple[Any, Sequence[str]]], vocabularies: Vocabularies
    ) -> Tensor | None:
        labels, rows = vocabularies.labels(), []
        for target, words in targets:
            if target is None:
                return None
            row = torch.zeros(len(labels))
            row[known_ids(target, labels, words)] = 1.0
            rows.append(row)
        return torch.stack(rows)

    def as_gold(self, prediction: LabelSet) -> tuple[str, ...]:
        return prediction.labels

    def comparable_gold(self, example: ExampleT) -> object:
        return tuple(sorted(self.gold(example)))

    def to_json(self, prediction: LabelSet, example: ExampleT) -> dict[str, Any]:
        """Return the words of each sentence, the labels and the probability of each label.

        Calibrated probabilities are marked by `"calibrated": true`.
        """
        return {
            **self.sentences_json(example),
            "labels": list(prediction.labels),
            "probabilities": dict(prediction.probabilities),
            **({"calibrated": True} if prediction.is_calibrated else {}),
        }

    def in_color(self, prediction: LabelSet) -> Text:
        return label_in_color(prediction)


class MultiLabelHead(LabelHead):
    """Scores whether each label applies to an example: p_label = sigmoid(logit_label).

    The loss is the mean of -log p over the labels, and then over the examples of a batch, with
    1 - p_label for the labels that do not apply.

    Args:
        vocabularies: counts of the training data, whose labels can be predicted.
        threshold: labels with a larger probability are predicted, unless the calibration of the
            run has fitted another threshold.
    """

    _threshold = 0.5

    def post_init(
        self,
        initializer: Initializers | None = None,
        regularizer: Regularizers | None = None,
        metrics: list[Metric] | None = None,
        threshold: Annotated[float, Gt(0), Lt(1)] = 0.5,
    ) -> None:
        """Apply the initializers and regularizers of a config, its metrics, and its threshold.

        Raises:
            ConfigError: as of `Model.post_init`.
            ValueError: as of `Head.post_init`.
        """
        super().post_init(initializer, regularizer, metrics)
        self._threshold = threshold

    def forward(self, batch: LabeledBatch) -> LogitsOutput:
        logits = self.checked_logits(batch)
        if batch.labels is None:
            return LogitsOutput(loss=None, logits=logits)
        losses = F.binary_cross_entropy_with_logits(
            logits, batch.labels.to(logits.dtype), reduction="none"
        ).mean(dim=1)
        return LogitsOutput(loss=losses.mean(), example_losses=losses, logits=logits)

    def scored_labels(self, output: LogitsOutput, batch: LabeledBatch) -> ScoredLabels:
        """Return the decisions, one for each label of each example, with the scores (0, logit)."""
        assert batch.labels is not None
        logits = output.logits.flatten().double().cpu().numpy()
        gold = batch.labels.flatten().long().cpu().numpy()
        return ScoredItems(np.stack([np.zeros_like(logits), logits], axis=1), gold, "decision")

    def predict(self, output: LogitsOutput, batch: LabeledBatch) -> list[LabelSet]:
        fitted = self.fitted_threshold
        return label_sets(
            output.logits,
            self.labels,
            threshold=self._threshold if fitted is None else fitted,
            temperature=self.temperature,
        )
