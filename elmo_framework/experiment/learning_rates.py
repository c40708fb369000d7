"""The learning-rate range test (Smith 2017): a training whose rate grows with each update."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import final

import torch
from torch.optim import Optimizer

from elmo_framework.console import ProgressBar
from elmo_framework.errors import RunError
from elmo_framework.experiment.assembly import Assembly
from elmo_framework.experiment.experiment import Experiment
from elmo_framework.experiment.init_from import load_initial_weights
from elmo_framework.experiment.train import build_trainer
from elmo_framework.training.process_group import choose_device
from elmo_framework.training.schedule import ScheduleFunction
from elmo_framework.training.seeds import seed_everything

_SMOOTHING = 0.9
_NUM_FIRST = 10
"""Updates after which a loss may end the test: the mean of fewer is too noisy."""


@final
@dataclass(frozen=True, kw_only=True)
class RateRange:
    """The learning rates of a test.

    Attributes:
        start: the rate of the first update.
        end: that of the last one.
        num_batches: the number of updates, at least 2.
        is_linear: whether the rate grows by the same amount, not by the same factor.
        stopping_factor: the test ends when the smoothed loss is so many times its minimum; None
            never ends it.

    Raises:
        ValueError: the rates do not grow from above 0, there are too few updates, or the factor
            is not above 1.
    """

    start: float = 1e-5
    end: float = 10.0
    num_batches: int = 100
    is_linear: bool = False
    stopping_factor: float | None = 4.0

    def __post_init__(self) -> None:
        if not 0 < self.start < self.end < math.inf:
            raise ValueError(
                f"rates from {self.start:g} to {self.end:g}; the first must be above 0 and below "
                "the last"
            )
        if self.num_batches < 2:
            raise ValueError(f"{self.num_batches} batches; a range needs 2 or more")
        if self.stopping_factor is not None and not self.stopping_factor > 1:
            raise ValueError(f"a stopping factor of {self.stopping_factor:g}; it must be above 1")

    def rate(self, step: int) -> float:
        """Return the rate of an update, counted from 0."""
        part = step / (self.num_batches - 1)
        if self.is_linear:
            return self.start + part * (self.end - self.start)
        return float(self.start * (self.end / self.start) ** part)


@final
@dataclass(frozen=True)
class RateLosses:
    """The losses of a learning-rate range test.

    Attributes:
        rates: of the updates.
        losses: of their batches, before each update.
        end: why there are no more; None after the last rate.
    """

    rates: Sequence[float]
    losses: Sequence[float]
    end: str | None = None

    @property
    def smoothed(self) -> list[float]:
        """The exponential moving average of the losses, without the bias of its beginning."""
        return _smoothed(self.losses)

    @property
    def steepest(self) -> float:
        """The rate at which the smoothed loss falls fastest by the logarithm of the rate."""
        smoothed, best = self.smoothed, (math.inf, self.rates[0])
        for step in range(1, len(smoothed) - 1):
            span = math.log(self.rates[step + 1] / self.rates[step - 1])
            slope = (smoothed[step + 1] - smoothed[step - 1]) / span
            best = min(best, (slope, self.rates[step]))
        return best[1]

    @property
    def lowest(self) -> float:
        """The rate with the lowest smoothed loss; a tenth of it is a usual choice."""
        smoothed = self.smoothed
        return self.rates[smoothed.index(min(smoothed))]


def rate_losses(experiment: Experiment, rates: RateRange) -> RateLosses:
    """Train the model of an experiment with growing learning rates, and forget it.

    Nothing is evaluated or saved, but frozen layers are cached as in training. Where parameters
    have different rates, these grow by the same factor and the first one is that of the range.

    Args:
        experiment: built; its own rate, schedule, limits and callbacks have no effect.
        rates: of the updates.

    Raises:
        RunError: the model learns without gradients, or has nothing to train.
        DataError: the data cannot be read.
    """
    base: list[float] = []
    schedule = ScheduleFunction(lambda state: rates.rate(state.step) / base[0])
    options = replace(
        experiment.trainer,
        learning_rate_scheduler=schedule,
        num_steps=rates.num_batches,
        num_epochs=None,
        max_minutes=None,
        patience=None,
        unfreezing=None,
    )
    changed = copy(experiment)
    changed.trainer = options
    assembly = Assembly.build(changed, device=choose_device(options.device))
    if assembly.model.learns_without_gradients:
        raise RunError("this model learns without gradients, and has no learning rate")
    assembly.precompute()
    if experiment.init_from is not None:
        load_initial_weights(experiment.init_from, assembly.model)
    seed_everything(experiment.random_seed)
    trainer = build_trainer(assembly, evaluator=None)
    base.append(_first_rate(trainer.optimizer))
    used_rates, losses, end = list[float](), list[float](), None
    with ProgressBar("learning rates", total=rates.num_batches, unit="step") as progress:
        try:
            for report in trainer.steps():
                used_rates.append(report.learning_rate)
                losses.append(float(report.loss))
                progress.advance(1)
                if end := _end(losses, rates.stopping_factor):
                    break
        except RunError as error:  # the loss is not finite
            end = str(error)
    if len(losses) < 3:
        raise RunError(f"{end}; start at a smaller rate" if end else "too few updates")
    return RateLosses(used_rates, losses, end)


def _first_rate(optimizer: Optimizer) -> float:
    rate = optimizer.param_groups[0]["lr"]
    return float(rate.item() if isinstance(rate, torch.Tensor) else rate)


def _end(losses: Sequence[float], factor: float | None) -> str | None:
    if factor is None or len(losses) <= _NUM_FIRST:
        return None
    smoothed = _smoothed(losses)
    if smoothed[-1] <= factor * min(smoothed):
        return None
    return f"the smoothed loss is more than {factor:g} times its minimum"


def _smoothed(losses: Sequence[float]) -> list[float]:
    average, smoothed = 0.0, list[float]()
    for number, loss in enumerate(losses, start=1):
        average = _SMOOTHING * average + (1 - _SMOOTHING) * loss
        smoothed.append(average / (1 - _SMOOTHING**number))
    return smoothed
