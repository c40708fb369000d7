"""The figures of updates that curves are drawn from."""

from __future__ import annotations

from elmo_framework.training.progress import StepReport


class Rate:
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


class StepFigures:
    """Gives figures every few updates; those between are not asked for, as a GPU would wait.

    Args:
        interval: updates from one entry to the next.
    """

    def __init__(self, interval: int) -> None:
        self._interval, self._rate = interval, Rate()

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
        self._rate = Rate()
        return figures
