"""What a user sees while a model trains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

from elmo_framework.common.logs import Progress as ProgressBar
from elmo_framework.common.logs import say
from elmo_framework.training.observer import Observer
from elmo_framework.training.progress import Progress, StepReport

_STEPS_BETWEEN_LOOKS = 10
"""How often the loss is asked for: on a GPU each time makes it wait."""


@final
class Console(Observer):
    """A progress bar over the updates, and a line for each evaluation.

    Args:
        num_steps: how many updates there will be; None when only the clock limits them.
        metric: the score that decides, after its sign; shown beside the loss.
    """

    def __init__(self, *, num_steps: int | None, metric: str) -> None:
        self._num_steps, self._shown = num_steps, dict.fromkeys(["loss", metric[1:]])
        self._bar: ProgressBar | None = None
        self._note, self._num_tokens, self._since = "", 0, 0.0

    def start(self, progress: Progress) -> None:
        """Show the bar, from where training goes on."""
        left = None if self._num_steps is None else max(0, self._num_steps - progress.step)
        again = f" on from step {progress.step}" if progress.step else ""
        self._bar = ProgressBar(f"training{again}", total=left, unit="steps")
        self._bar.__enter__()
        self._since = progress.seconds

    def step(self, report: StepReport) -> None:
        """Move the bar."""
        self._num_tokens += report.num_tokens
        if report.step % _STEPS_BETWEEN_LOOKS == 0:
            rate = self._num_tokens / max(report.seconds - self._since, 1e-9)
            self._note = (
                f"epoch {report.epoch + 1}, loss {float(report.loss):.4g}, {rate:,.0f} tokens/s"
            )
            self._num_tokens, self._since = 0, report.seconds
        if self._bar is not None:
            self._bar.advance(1, note=self._note)

    def scores(self, progress: Progress, scores: Mapping[str, float]) -> None:
        """Print the loss and the score that decides."""
        shown = [name for name in self._shown if name in scores]
        figures = ", ".join(f"{name} {scores[name]:.4g}" for name in shown)
        best = " (best so far)" if progress.is_best else ""
        say(f"step {progress.step}: {figures}{best}")
        self._since = progress.seconds

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.__exit__(None, None, None)
            self._bar = None
