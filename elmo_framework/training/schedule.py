"""Learning-rate schedules, each a function of the progress of training.

A schedule has no state: its value follows from the step and the scores so far, so that a resumed
run needs nothing else.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, TypeAlias, final

from annotated_types import Ge, Gt, Le, Lt

from elmo_framework.config.registry import Registrable
from elmo_framework.config.types import MAX_COUNT, Count, CountOrZero, Dim


@dataclass(frozen=True)
class ScheduleState:
    """Progress of training, as seen by a schedule.

    Attributes:
        step: index of the next update, from 0.
        num_steps: total number of updates, if known.
        epoch: index of the epoch of that update, from 0.
        scores: the validation metric at each evaluation so far; larger is better.
    """

    step: int
    num_steps: int | None = None
    epoch: int = 0
    scores: Sequence[float] = ()

    @property
    def total(self) -> int:
        """The total number of updates, for a schedule that needs it."""
        assert self.num_steps is not None
        return self.num_steps


class Schedule(Registrable, ABC):
    """Base class for learning-rate schedules: a factor of the optimizer's learning rate.

    Args:
        warmup_steps: number of updates until the full rate is reached.

    Attributes:
        needs_num_steps: whether the total number of updates must be known.
        needs_scores: whether there must be validation data.
    """

    default_member = "constant"
    needs_num_steps = False
    needs_scores = False

    @abstractmethod
    def multiplier(self, state: ScheduleState) -> float:
        """Return the factor of the learning rate for the next update."""


Multiplier: TypeAlias = Callable[[ScheduleState], float]


@final
class ScheduleFunction(Schedule):
    """A schedule whose factor is a function of the progress of training."""

    def __init__(
        self, function: Multiplier, *, needs_num_steps: bool = False, needs_scores: bool = False
    ) -> None:
        self._function = function
        self.needs_num_steps, self.needs_scores = needs_num_steps, needs_scores

    def multiplier(self, state: ScheduleState) -> float:
        return self._function(state)


def _after_warmup(warmup_steps: int, decay: Multiplier) -> Multiplier:
    """Return a multiplier that grows linearly over the warm-up, then follows `decay`."""

    def multiplier(state: ScheduleState) -> float:
        is_warming_up = state.step < warmup_steps
        return (state.step + 1) / warmup_steps if is_warming_up else decay(state)

    return multiplier


@Schedule.register("constant")
def constant() -> Schedule:
    """The optimizer's learning rate throughout."""
    return ScheduleFunction(lambda state: 1.0)


@Schedule.register("linear_with_warmup")
def linear_with_warmup(warmup_steps: CountOrZero = 0) -> Schedule:
    """Grows linearly over the warm-up, then falls linearly to 0 at the last step."""

    def decay(state: ScheduleState) -> float:
        num_left = state.total - state.step
        return max(0.0, num_left / max(1, state.total - warmup_steps))

    return ScheduleFunction(_after_warmup(warmup_steps, decay), needs_num_steps=True)


@Schedule.register("constant_with_warmup")
def constant_with_warmup(warmup_steps: CountOrZero = 0) -> Schedule:
    """Grows linearly over the warm-up, then stays constant."""
    return ScheduleFunction(_after_warmup(warmup_steps, lambda state: 1.0))


@Schedule.register("cosine_with_warmup")
def cosine_with_warmup(warmup_steps: CountOrZero = 0) -> Schedule:
    """Grows linearly over the warm-up, then falls to 0 along half a cosine."""

    def decay(state: ScheduleState) -> float:
        done = (state.step - warmup_steps) / max(1, state.total - warmup_steps)
        return 0.5 * (1 + math.cos(math.pi * min(1.0, done)))

    return ScheduleFunction(_after_warmup(warmup_steps, decay), needs_num_steps=True)


@Schedule.register("noam")
def noam(model_size: Dim, warmup_steps: Count, factor: Annotated[float, Gt(0)] = 1.0) -> Schedule:
    """`factor * model_size^-0.5 * min(step^-0.5, step * warmup_steps^-1.5)` (Vaswani 2017).

    Args:
        model_size: the dimension of the model.
        warmup_steps: the update with the largest rate.
        factor: constant factor.
    """

    def multiplier(state: ScheduleState) -> float:
        step = state.step + 1
        slope = min(step**-0.5, step * warmup_steps**-1.5)
        return float(factor * model_size**-0.5 * slope)

    return ScheduleFunction(multiplier)


@Schedule.register("exponential")
def exponential(gamma: Annotated[float, Gt(0)]) -> Schedule:
    """Multiplies the rate by `gamma` after each epoch.

    Args:
        gamma: factor per epoch.
    """
    return ScheduleFunction(lambda state: float(gamma**state.epoch))


@Schedule.register("reduce_on_plateau")
def reduce_on_plateau(
    factor: Annotated[float, Gt(0), Lt(1)] = 0.1,
    patience: CountOrZero = 10,
    threshold: Annotated[float, Ge(0)] = 1e-4,
) -> Schedule:
    """Multiplies the rate by `factor` whenever the validation metric stops improving.

    Args:
        factor: factor of each reduction.
        patience: number of evaluations without improvement that are tolerated.
        threshold: minimum improvement, relative to the best score.
    """

    def multiplier(state: ScheduleState) -> float:
        best, waited, reductions = -math.inf, 0, 0
        for score in state.scores:
            is_better = math.isinf(best) or score > best + abs(best) * threshold
            best, waited = (score, 0) if is_better else (best, waited + 1)
            if waited > patience:
                reductions, waited = reductions + 1, 0
        return float(factor**reductions)

    return ScheduleFunction(multiplier, needs_scores=True)


@Schedule.register("slanted_triangular")
def slanted_triangular(
    cut_frac: Annotated[float, Gt(0), Lt(1)] = 0.1,
    ratio: Annotated[int, Gt(1), Le(MAX_COUNT)] = 32,
) -> Schedule:
    """A short increase, then a long decay (Howard and Ruder 2018, equation 3).

    Args:
        cut_frac: fraction of the steps in which the rate increases.
        ratio: the largest rate divided by the smallest.
    """

    def multiplier(state: ScheduleState) -> float:
        cut = max(1, int(state.total * cut_frac))
        fall = max(1, state.total - cut)
        fraction = state.step / cut if state.step < cut else 1 - (state.step - cut) / fall
        return (1 + max(0.0, fraction) * (ratio - 1)) / ratio

    return ScheduleFunction(multiplier, needs_num_steps=True)


@Schedule.register("multi_step")
def multi_step(milestones: list[Count], gamma: Annotated[float, Gt(0)] = 0.1) -> Schedule:
    """Multiplies the rate by `gamma` at each milestone.

    Args:
        milestones: epochs at whose start the rate is multiplied, in ascending order.
        gamma: factor at each milestone.
    """
    if any(later <= earlier for earlier, later in pairwise(milestones)):
        raise ValueError(f"milestones must be in ascending order, not {milestones}")

    def multiplier(state: ScheduleState) -> float:
        passed = sum(milestone <= state.epoch for milestone in milestones)
        return float(gamma**passed)

    return ScheduleFunction(multiplier)
