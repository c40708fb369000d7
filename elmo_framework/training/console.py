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
        shown: which scores stand in the line.
    """

    def __init__(self, *, num_steps: int | None) -> None:
        self._num_steps = num_steps
        self._bar: ProgressBar | None = None
        self._loss = ""

    def start(self, progress: Progress) -> None:
        """Show the bar, from where training goes on."""
        self._bar = ProgressBar(
            "training", total=self._num_steps, unit="steps", initial=progress.step
        )
        self._bar.__enter__()

    def step(self, report: StepReport) -> None:
        """Move the bar."""
        if report.step % _STEPS_BETWEEN_LOOKS == 1:
            self._loss = f"epoch {report.epoch + 1}, loss {float(report.loss):.4g}"
        if self._bar is not None:
            self._bar.advance(1, note=self._loss)

    def scores(self, progress: Progress, scores: Mapping[str, float]) -> None:
        """Print the scores that concern the whole."""
        figures = ", ".join(f"{name} {value:.4g}" for name, value in scores.items())
        best = " (best so far)" if progress.is_best else ""
        say(f"step {progress.step}{best}: {figures}")

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.__exit__(None, None, None)
            self._bar = None
