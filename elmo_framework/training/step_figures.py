"""The figures of updates that curves are drawn from."""

from __future__ import annotations

from elmo_framework.training.progress import StepReport


class Rate:
    """Tokens a second, over the updates since a moment."""

    def __init__(self) -> None:
        self._num_tokens, self._since, self._seen = 0, 0.0, 0.0

    def start(self, seconds: float) -> None:
        """Count from here.

        Args:
            seconds: spent in training so far.
        """
        self._num_tokens, self._since, self._seen = 0, seconds, seconds

    def count(self, report: StepReport) -> None:
        """Count an update."""
        self._num_tokens += report.num_tokens
        self._seen = report.seconds

    def pass_over(self, seconds: float) -> None:
        """Leave out the time since the last update, such as that of an evaluation.

        Args:
            seconds: spent in training so far, that time included.
        """
        self._since += seconds - self._seen
        self._seen = seconds

    @property
    def seconds(self) -> float:
        """The time of the updates."""
        return max(self._seen - self._since, 1e-9)

    @property
    def tokens_per_second(self) -> float:
        """The tokens that were read in it, a second."""
        return self._num_tokens / self.seconds


class StepFigures:
    """Gives figures every few updates; those between are not asked for, as a GPU would wait.

    Args:
        interval: updates from one entry to the next.

    Attributes:
        rate: since the last entry.
    """

    def __init__(self, interval: int) -> None:
        self._interval, self.rate = interval, Rate()

    def of(self, report: StepReport) -> dict[str, float] | None:
        """Return loss, gradient norm, learning rate and tokens a second where they are due."""
        self.rate.count(report)
        if report.step % self._interval:
            return None
        figures = {
            "loss": float(report.loss),
            "gradient_norm": float(report.gradient_norm),
            "learning_rate": report.learning_rate,
            "tokens_per_second": self.rate.tokens_per_second,
        }
        self.rate.start(report.seconds)
        return figures
