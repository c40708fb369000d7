"""The figures of updates that curves are drawn from."""

from __future__ import annotations

from elmo_framework.training.progress import StepReport


class StepFigures:
    """Gives figures every few updates; those between are not asked for, as a GPU would wait.

    Args:
        interval: updates from one entry to the next.
    """

    def __init__(self, interval: int) -> None:
        self._interval = interval
        self._num_tokens, self._since, self._seen = 0, 0.0, 0.0

    def start(self, seconds: float) -> None:
        """Count from here.

        Args:
            seconds: spent in training so far.
        """
        self._num_tokens, self._since, self._seen = 0, seconds, seconds

    def pass_over(self, seconds: float) -> None:
        """Leave the time since the last update, such as that of an evaluation, out of the rate.

        Args:
            seconds: spent in training so far, that time included.
        """
        self._since += seconds - self._seen
        self._seen = seconds

    def of(self, report: StepReport) -> dict[str, float] | None:
        """Return loss, gradient norm, learning rate and tokens a second where they are due."""
        self._num_tokens += report.num_tokens
        self._seen = report.seconds
        if report.step % self._interval:
            return None
        seconds = max(report.seconds - self._since, 1e-9)
        figures = {
            "loss": float(report.loss),
            "gradient_norm": float(report.gradient_norm),
            "learning_rate": report.learning_rate,
            "tokens_per_second": self._num_tokens / seconds,
        }
        self._num_tokens, self._since = 0, report.seconds
        return figures
