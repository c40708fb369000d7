"""Progress bar and evaluation lines in the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

from elmo_framework import console
from elmo_framework.console import ProgressBar
from elmo_framework.training.callback import Callback
from elmo_framework.training.state import StepMetrics, StepReport, TrainingState
from elmo_framework.training.trainer import Trainer

_STEPS_BETWEEN_NOTES = 10
"""Reading the loss synchronizes with the GPU, so it is not done after each step."""


@final
class Console(Callback):
    """A progress bar over the updates, and a line for each evaluation.

    Args:
        trainer: whose updates are counted; its validation metric is shown next to the loss.
    """

    def __init__(self, trainer: Trainer) -> None:
        self._trainer, self._metrics = trainer, StepMetrics(_STEPS_BETWEEN_NOTES)
        self._shown = dict.fromkeys(["loss", trainer.options.validation_metric[1:]])
        self._bar: ProgressBar | None = None
        self._note, self._first_step = "", 0

    def start(self, progress: TrainingState) -> None:
        num_steps = self._trainer.num_steps
        num_left = None if num_steps is None else max(0, num_steps - progress.step)
        resumed = f" (resumed at step {progress.step})" if progress.step else ""
        self._first_step = progress.step
        self._bar = ProgressBar(f"training{resumed}", total=num_left, unit="step")
        self._bar.__enter__()

    def step(self, report: StepReport) -> None:
        metrics = self._metrics.of(report)
        if metrics is not None:
            self._note = (
                f"epoch {report.epoch + 1}, loss {metrics['loss']:.4g}, "
                f"{metrics['tokens_per_second']:,.0f} tokens/s"
            )
        if self._bar is not None:
            self._bar.advance(1, note=self._note)

    def scores(self, progress: TrainingState, scores: Mapping[str, float]) -> None:
        """Print the loss and the validation metric."""
        names = [name for name in self._shown if name in scores]
        metrics = ", ".join(f"{name} {scores[name]:.4g}" for name in names)
        best = " (best so far)" if progress.is_best else ""
        console.info(f"step {progress.step}: {metrics}{best}")
        if self._bar is not None and progress.step == self._first_step:
            self._bar.restart_clock()

    def close(self) -> None:
        if self._bar is not None:
            self._bar.__exit__(None, None, None)
            self._bar = None
