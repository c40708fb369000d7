"""How far a training is: a few numbers that everything else follows from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor


@dataclass(frozen=True)
class TrainingState:
    """How far a training is.

    Attributes:
        step: updates made.
        epochs: passes over the training data that are complete.
        seconds: time spent, over all its processes one after the other.
        scores: the validation metric at each evaluation, its sign turned so that larger is
            better.
        best_step: the step of the best of them; None before the first evaluation.
        best_scores: all scores of that evaluation, by name.
        last_scores: all scores of the last evaluation.
        last_evaluation: seconds at the last evaluation.
        step_offset: added to `step` where the learning rate follows the epochs. It is not 0 after
            the number of processes has changed, and with it the number of updates in an epoch.
        is_evaluation_due: whether the evaluation after the last update was stopped, so that
            training continues with it.
    """

    step: int = 0
    epochs: int = 0
    seconds: float = 0.0
    scores: tuple[float, ...] = ()
    best_step: int | None = None
    best_scores: Mapping[str, float] | None = None
    last_scores: Mapping[str, float] | None = None
    last_evaluation: float = 0.0
    step_offset: int = 0
    is_evaluation_due: bool = False

    @property
    def is_best(self) -> bool:
        """Whether the evaluation at this step is the best so far, the first of equals."""
        return self.best_step == self.step

    @property
    def evaluations_without_improvement(self) -> int:
        """How many evaluations there were after the best one."""
        return len(self.scores) - 1 - self.scores.index(max(self.scores)) if self.scores else 0

    def after_step(self, *, seconds: float, is_epoch_end: bool) -> TrainingState:
        """Return the progress after one more update."""
        epochs = self.epochs + is_epoch_end
        return replace(self, step=self.step + 1, epochs=epochs, seconds=seconds)

    def after_evaluation(
        self, scores: Mapping[str, float], *, metric: str, seconds: float
    ) -> TrainingState:
        """Return the progress after an evaluation.

        Args:
            scores: all scores, by name.
            metric: the name of the one that decides, after its sign.
            seconds: time spent so far.
        """
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
        return replace(after, best_step=self.step, best_scores=dict(scores))

    def to_json(self) -> dict[str, Any]:
        """Return the progress as JSON types."""
        return {**vars(self), "scores": list(self.scores)}

    @classmethod
    def from_json(cls, written: Mapping[str, Any]) -> TrainingState:
        """Read what `to_json` returned, also where an earlier version wrote 0 for no best step."""
        scores = tuple(written["scores"])
        return cls(
            **{**written, "scores": scores, "best_step": written["best_step"] if scores else None}
        )


@dataclass(frozen=True)
class StepReport:
    """One update, as callbacks see it.

    Attributes:
        step: updates made, this one included.
        epoch: the epoch it belongs to, from 0.
        is_epoch_end: whether it is the last of its epoch.
        loss: the mean loss of its batches, without penalties; on the device.
        gradient_norm: of all gradients together, before they were clipped; on the device.
        learning_rate: that it was made with.
        num_tokens: in its batches, over all processes: those of this process times their number.
            That is exact where all read windows of one size, and nearly so elsewhere.
        seconds: time spent so far.
        update_seconds: time since the update before, without evaluations and checkpoints.
        title: what a message calls its last batch.
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


class Throughput:
    """Tokens a second, over the updates that are counted.

    Attributes:
        seconds: the time of the updates.
    """

    def __init__(self) -> None:
        self.seconds, self._num_tokens = 0.0, 0

    def count(self, report: StepReport) -> None:
        """Count an update."""
        self.seconds += report.update_seconds
        self._num_tokens += report.num_tokens

    @property
    def tokens_per_second(self) -> float:
        """The tokens that were read in it, a second."""
        return self._num_tokens / max(self.seconds, 1e-9)


class StepMetrics:
    """Gives figures every few updates; those between are not asked for, as a GPU would wait.

    Args:
        interval: updates from one entry to the next.
    """

    def __init__(self, interval: int) -> None:
        self._interval, self._rate = interval, Throughput()

    def of(self, report: StepReport) -> dict[str, float] | None:
        """Return loss, gradient norm, learning rate and tokens a second where they are due.

        With a regularizer there is a `penalty` too, which `loss` does not hold.
        """
        self._rate.count(report)
        if report.step % self._interval:
            return None
        figures = {} if report.penalty is None else {"penalty": float(report.penalty)}
        figures |= {
            "loss": float(report.loss),
            "gradient_norm": float(report.gradient_norm),
            "learning_rate": report.learning_rate,
            "tokens_per_second": self._rate.tokens_per_second,
        }
        self._rate = Throughput()
        return figures
