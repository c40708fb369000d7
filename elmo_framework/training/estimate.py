"""What a training will take: its memory before it starts, its hours once the rate is known."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import final

import torch
from torch import Tensor, nn

from elmo_framework.common.logs import say, show_size
from elmo_framework.training.observer import Observer
from elmo_framework.training.optimizer import Optimizer
from elmo_framework.training.progress import Progress, StepReport
from elmo_framework.training.trainer import Trainer

_WARM_UP, _MEASURED = 5, 20
"""The first updates are slower, and not counted; then so many are timed."""
_WORTH_SAYING = 60.0
"""Seconds."""


@final
class Estimate(Observer):
    """Says what a training takes; silent about one that is over before it can be measured.

    Args:
        trainer: not started yet.
    """

    def __init__(self, trainer: Trainer) -> None:
        self._trainer = trainer
        self._num_steps: int | None = None
        self._first, self._since, self._seen, self._num_tokens = 0, 0.0, 0.0, 0

    def start(self, progress: Progress) -> None:
        """Say how much there is to hold and to read."""
        self._first, self._num_steps = progress.step, self._trainer.num_steps
        self._seen = progress.seconds
        if self._num_steps is not None and self._num_steps <= _WARM_UP + _MEASURED:
            return
        trained = [held for held in self._trainer.model.parameters() if held.requires_grad]
        num_bytes = sum(held.nbytes for held in self._trainer.model.parameters())
        # Beside each weight that is trained are its gradient and what the optimizer keeps.
        copies = 1 + _numbers_kept(self._trainer.options.optimizer)
        num_bytes += copies * sum(held.nbytes for held in trained)
        say(
            f"to train: {sum(held.numel() for held in trained):,} parameters; "
            f"{show_size(num_bytes)} for weights, gradients and optimizer, beside the activations"
            f"{self._amount()}"
        )

    def step(self, report: StepReport) -> None:
        """Measure the rate over some updates, and say when they will all be done."""
        done, self._seen = report.step - self._first, report.seconds
        if done == _WARM_UP:
            self._since = report.seconds
        elif _WARM_UP < done <= _WARM_UP + _MEASURED:
            self._num_tokens += report.num_tokens
            if done == _WARM_UP + _MEASURED:
                self._say_rate(report)

    def scores(self, progress: Progress, scores: Mapping[str, float]) -> None:
        """Leave the time of an evaluation out of the rate."""
        self._since += progress.seconds - self._seen
        self._seen = progress.seconds

    def _amount(self) -> str:
        """Say what will be read, as far as it is known."""
        tokens = self._trainer.source.num_tokens
        if self._num_steps is None or tokens is None:
            return ""
        batches = self._num_steps * self._trainer.options.num_gradient_accumulation_steps
        total = batches * tokens // self._trainer.source.num_batches
        return (
            f"; {self._num_steps:,} updates, {total:,} words and sentence ends, of which an epoch "
            f"has {tokens:,}"
        )

    def _say_rate(self, report: StepReport) -> None:
        seconds = max(report.seconds - self._since, 1e-9)
        rate = self._num_tokens / seconds
        left = self._seconds_left(report, seconds / _MEASURED)
        if left is None or left < _WORTH_SAYING:
            return
        end = datetime.now().astimezone() + timedelta(seconds=left)
        say(
            f"at {rate:,.0f} words/s: {timedelta(seconds=round(left))} left, until "
            f"{end:%a %d %b %H:%M}, evaluations not counted{_peak(self._trainer.device)}"
        )

    def _seconds_left(self, report: StepReport, of_step: float) -> float | None:
        """Return how long it takes to the first limit that is known."""
        minutes = self._trainer.options.max_minutes
        limits = []
        if self._num_steps is not None:
            limits.append((self._num_steps - report.step) * of_step)
        if minutes is not None:
            limits.append(60 * minutes - report.seconds)
        return min(limits, default=None)


def _numbers_kept(optimizer: Optimizer) -> int:
    """Return how many numbers an optimizer keeps for each weight, found on weights of its own."""
    weights = nn.Parameter(torch.zeros(2, 2))
    tried = optimizer.create([weights])
    weights.grad = torch.zeros_like(weights)
    tried.step()
    kept = tried.state[weights].values()
    return sum(isinstance(held, Tensor) and held.shape == weights.shape for held in kept)


def _peak(device: torch.device) -> str:
    if device.type != "cuda":
        return ""
    return f"; {show_size(torch.cuda.max_memory_allocated(device))} of its memory in use at most"
