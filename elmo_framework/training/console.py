"""Messages about a training in the terminal: a progress bar, evaluations, estimates."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import final

import torch
from torch import Tensor, nn

from elmo_framework import console
from elmo_framework.console import ProgressBar, format_bytes, plural
from elmo_framework.training.callback import Callback
from elmo_framework.training.optimizer import Optimizer
from elmo_framework.training.state import StepMetrics, StepReport, TrainingState, tokens_per_second
from elmo_framework.training.trainer import Trainer

_STEPS_BETWEEN_NOTES = 10
"""Reading the loss synchronizes with the GPU, so it is not done after each step."""
_WARM_UP, _MEASURED = 5, 20
"""The first updates are slower and not counted; the next ones are timed."""
_MIN_SECONDS_LEFT = 60.0
"""Shorter trainings get no estimate of their duration."""


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


@final
class ResourceEstimate(Callback):
    """Logs the memory and the duration of a training, unless it is too short to be measured.

    Args:
        trainer: not started yet.
    """

    def __init__(self, trainer: Trainer) -> None:
        self._trainer = trainer
        self._num_steps: int | None = None
        self._first = 0
        self._reports: list[StepReport] = []

    def start(self, progress: TrainingState) -> None:
        self._first, self._num_steps = progress.step, self._trainer.num_steps
        if self._num_steps is not None and self._num_steps <= _WARM_UP + _MEASURED:
            return
        parameters = list(self._trainer.model.parameters())
        trained = [parameter for parameter in parameters if parameter.requires_grad]
        num_bytes = sum(parameter.nbytes for parameter in parameters)
        # Each trained weight has a gradient and the optimizer's state in addition.
        copies = 1 + _numbers_per_weight(self._trainer.options.optimizer)
        num_bytes += copies * sum(parameter.nbytes for parameter in trained)
        console.info(
            f"training {plural(sum(parameter.numel() for parameter in trained), 'parameter')}; "
            f"{format_bytes(num_bytes)} for weights, gradients and optimizer, "
            "plus the activations"
            f"{self._amount()}"
        )

    def step(self, report: StepReport) -> None:
        done = report.step - self._first
        if _WARM_UP < done <= _WARM_UP + _MEASURED:
            self._reports.append(report)
        if done == _WARM_UP + _MEASURED:
            self._log_rate(report)

    def _amount(self) -> str:
        tokens = self._trainer.source.num_tokens
        if self._num_steps is None or tokens is None:
            return ""
        batches = self._num_steps * self._trainer.options.num_gradient_accumulation_steps
        total = batches * tokens // self._trainer.source.num_batches
        return (
            f"; {plural(self._num_steps, 'update')}, {total:,} words and sentence ends "
            f"({tokens:,} per epoch)"
        )

    def _log_rate(self, report: StepReport) -> None:
        seconds = sum(report.update_seconds for report in self._reports)
        left = self._seconds_left(report, seconds / _MEASURED)
        if left is None or left < _MIN_SECONDS_LEFT:
            return
        rate = tokens_per_second(self._reports)
        end = datetime.now().astimezone() + timedelta(seconds=left)
        console.info(
            f"at {rate:,.0f} tokens/s: {timedelta(seconds=round(left))} "
            f"left, until {end:%a %d %b %H:%M}, excluding evaluations and checkpoints"
            f"{_peak(self._trainer.device)}"
        )

    def _seconds_left(self, report: StepReport, step_seconds: float) -> float | None:
        """Return the time to the first known limit; None without one."""
        minutes = self._trainer.options.max_minutes
        limits = []
        if self._num_steps is not None:
            limits.append((self._num_steps - report.step) * step_seconds)
        if minutes is not None:
            limits.append(60 * minutes - report.seconds)
        return min(limits, default=None)


def _numbers_per_weight(optimizer: Optimizer) -> int:
    """Count the numbers that an optimizer stores per weight, by a trial step on a small tensor."""
    weights = nn.Parameter(torch.zeros(2, 2))
    trial = optimizer.create([weights])
    weights.grad = torch.zeros_like(weights)
    trial.step()
    state = trial.state[weights].values()
    return sum(isinstance(value, Tensor) and value.shape == weights.shape for value in state)


def _peak(device: torch.device) -> str:
    if device.type != "cuda":
        return ""
    return f"; peak GPU memory {format_bytes(torch.cuda.max_memory_allocated(device))}"
