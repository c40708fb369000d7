"""Training state, and reports and metrics of single updates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from elmo_framework.metrics.metric import Table


@dataclass(frozen=True)
class TrainingState:
    """Progress of a training.

    Attributes:
        step: number of updates made.
        epochs: number of times that all training data was read.
        seconds: training time, including that before each resumption.
        scores: the validation metric at each evaluation, negated where smaller is better, so
            that larger is better.
        best_step: the step of the best of them; None before the first evaluation.
        best_scores: all scores of that evaluation, by name.
        best_tables: its tables, such as the confusion matrix, by name.
        last_scores: all scores of the last evaluation.
        last_evaluation: `seconds` at the last evaluation.
        step_offset: added to `step` where the learning rate follows the epochs. It is not 0 after
            the number of processes, and with it the number of updates per epoch, has changed.
        is_evaluation_due: whether the evaluation after the last update was interrupted, so that
            training resumes with it.
    """

    step: int = 0
    epochs: int = 0
    seconds: float = 0.0
    scores: tuple[float, ...] = ()
    best_step: int | None = None
    best_scores: Mapping[str, float] | None = None
    best_tables: Mapping[str, Table] | None = None
    last_scores: Mapping[str, float] | None = None
    last_evaluation: float = 0.0
    step_offset: int = 0
    is_evaluation_due: bool = False

    @property
    def is_best(self) -> bool:
        """Whether the evaluation at this step is the best so far; of equal ones, the first."""
        return self.best_step == self.step

    @property
    def evaluations_without_improvement(self) -> int:
        return len(self.scores) - 1 - self.scores.index(max(self.scores)) if self.scores else 0

    def after_step(self, *, seconds: float, is_epoch_end: bool) -> TrainingState:
        epochs = self.epochs + is_epoch_end
        return replace(self, step=self.step + 1, epochs=epochs, seconds=seconds)

    def after_evaluation(
        self,
        scores: Mapping[str, float],
        *,
        metric: str,
        seconds: float,
        tables: Mapping[str, Table] | None = None,
    ) -> TrainingState:
        """Return the state after an evaluation; `metric` is the validation metric with its sign."""
        score = scores[metric[1:]] if metric[0] == "+" else -scores[metric[1:]]
        after = replace(
            self,
            scores=(*self.scores, score),
            last_scores=dict(scores),
            seconds=seconds,
            last_evaluation=seconds,
            is_evaluation_due=False,
        )
        if self.scores and score <= max(self.scores):
            return after
        best = dict(scores)
        return replace(after, best_step=self.step, best_scores=best, best_tables=tables)

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "scores": list(self.scores)}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> TrainingState:
        """Read the result of `to_json`; earlier versions wrote 0 without a best step."""
        scores = tuple(fields["scores"])
        best_step = fields["best_step"] if scores else None
        return cls(**{**fields, "scores": scores, "best_step": best_step})


@dataclass(frozen=True)
class StepReport:
    """Report of one update, passed to callbacks.

    Attributes:
        step: number of updates made, this one included.
        epoch: the epoch it belongs to, from 0.
        is_epoch_end: whether it is the last of its epoch.
        loss: the mean loss of its batches, without penalties; on the device.
        gradient_norm: of all gradients together, before clipping; on the device.
        learning_rate: the learning rate of this update.
        num_tokens: in its batches, over all processes: those of this process times their number.
            That is exact where all read windows of one size, and approximate elsewhere.
        seconds: training time so far.
        update_seconds: time since the previous update, without evaluations and checkpoints.
        title: description of its last batch, for messages.
        penalty: what regularization added to the loss; on the device. None without any.
    """

    step: int
    epoch: int
    is_epoch_end: bool
    loss: Tensor
    gradient_norm: Tensor
    learning_rate: float
    num_tokens: int
    seconds: float
    update_seconds: float
    title: str
    penalty: Tensor | None = None


def tokens_per_second(reports: Sequence[StepReport]) -> float:
    """Return the rate of some updates, without evaluations and checkpoints."""
    seconds = sum(report.update_seconds for report in reports)
    return sum(report.num_tokens for report in reports) / max(seconds, 1e-9)


class StepMetrics:
    """Metrics of every `interval`-th update; reading each would synchronize with the GPU."""

    def __init__(self, interval: int) -> None:
        self._interval = interval
        self._reports: list[StepReport] = []

    def of(self, report: StepReport) -> dict[str, float] | None:
        """Return loss, gradient norm, learning rate and tokens per second, or None if not due.

        With a regularizer there is a `penalty` too, which is not part of `loss`.
        """
        self._reports.append(report)
        if report.step % self._interval:
            return None
        metrics = {} if report.penalty is None else {"penalty": float(report.penalty)}
        metrics |= {
            "loss": float(report.loss),
            "gradient_norm": float(report.gradient_norm),
            "learning_rate": report.learning_rate,
            "tokens_per_second": tokens_per_second(self._reports),
        }
        self._reports.clear()
        return metrics
