"""What a training will take: its memory before it starts, its hours once the rate is known."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import final

import torch
from torch import Tensor, nn

from elmo_framework import console
from elmo_framework.console import format_bytes, plural
from elmo_framework.training.callback import Callback
from elmo_framework.training.optimizer import Optimizer
from elmo_framework.training.state import StepReport, Throughput, TrainingState
from elmo_framework.training.trainer import Trainer

_WARM_UP, _MEASURED = 5, 20
"""The first updates are slower, and not counted; then so many are timed."""
_WORTH_SAYING = 60.0
"""Seconds."""


@final
class Estimate(Callback):
    """Says what a training takes; silent about one that is over before it can be measured.

    Args:
        trainer: not started yet.
    """

    def __init__(self, trainer: Trainer) -> None:
        self._trainer = trainer
        self._num_steps: int | None = None
        self._first, self._rate = 0, Throughput()

    def start(self, progress: TrainingState) -> None:
        """Say how much there is to hold and to read."""
        self._first, self._num_steps = progress.step, self._trainer.num_steps
        if self._num_steps is not None and self._num_steps <= _WARM_UP + _MEASURED:
            return
        trained = [held for held in self._trainer.model.parameters() if held.requires_grad]
        num_bytes = sum(held.nbytes for held in self._trainer.model.parameters())
        # Beside each weight that is trained are its gradient and what the optimizer keeps.
        copies = 1 + _numbers_kept(self._trainer.options.optimizer)
        num_bytes += copies * sum(held.nbytes for held in trained)
        console.info(
            f"to train: {plural(sum(held.numel() for held in trained), 'parameter')}; "
            f"{format_bytes(num_bytes)} for weights, gradients and optimizer, "
            "beside the activations"
            f"{self._amount()}"
        )

    def step(self, report: StepReport) -> None:
        """Measure the rate over some updates, and say when they will all be done."""
        done = report.step - self._first
        self._rate.count(report)
        if done == _WARM_UP:
            self._rate = Throughput()
        elif done == _WARM_UP + _MEASURED:
            self._say_rate(report)

    def _amount(self) -> str:
        """Say what will be read, as far as it is known."""
        tokens = self._trainer.source.num_tokens
        if self._num_steps is None or tokens is None:
            return ""
        batches = self._num_steps * self._trainer.options.num_gradient_accumulation_steps
        total = batches * tokens // self._trainer.source.num_batches
        return (
            f"; {plural(self._num_steps, 'update')}, {total:,} words and sentence ends, of which "
            f"an epoch has {tokens:,}"
        )

    def _say_rate(self, report: StepReport) -> None:
        left = self._seconds_left(report, self._rate.seconds / _MEASURED)
        if left is None or left < _WORTH_SAYING:
            return
        end = datetime.now().astimezone() + timedelta(seconds=left)
        console.info(
            f"at {self._rate.tokens_per_second:,.0f} tokens/s: {timedelta(seconds=round(left))} "
            f"left, until {end:%a %d %b %H:%M}, evaluations and checkpoints not counted"
            f"{_peak(self._trainer.device)}"
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
    return f"; {format_bytes(torch.cuda.max_memory_allocated(device))} of its memory in use at most"
