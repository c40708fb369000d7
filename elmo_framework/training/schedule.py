"""Learning-rate schedules, each a function of the progress of training.

A schedule has no state: its value follows from the step and the scores so far, so that a resumed
run needs nothing else.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, final

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


class Schedule(Registrable, ABC):
    """Base class for learning-rate schedules: a factor of the optimizer's learning rate.

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


@dataclass(frozen=True)
class WarmupSchedule(Schedule, ABC):
    """Base class for schedules that begin with a linear warm-up.

    Args:
        warmup_steps: number of updates until the full rate is reached.
    """

    warmup_steps: CountOrZero = 0

    def multiplier(self, state: ScheduleState) -> float:
        if state.step < self.warmup_steps:
            return (state.step + 1) / self.warmup_steps
        return self.decay(state)

    @abstractmethod
    def decay(self, state: ScheduleState) -> float:
        """Return the factor after the warm-up."""


@final
@Schedule.register("constant")
class ConstantSchedule(Schedule):
    """The optimizer's learning rate throughout."""

    def multiplier(self, state: ScheduleState) -> float:
        return 1.0


@final
@Schedule.register("linear_with_warmup")
class LinearWithWarmupSchedule(WarmupSchedule):
    """Grows linearly over the warm-up, then falls linearly to 0 at the last step."""

    needs_num_steps = True

    def decay(self, state: ScheduleState) -> float:
        assert state.num_steps is not None
        num_left = state.num_steps - state.step
        return max(0.0, num_left / max(1, state.num_steps - self.warmup_steps))


@final
@Schedule.register("constant_with_warmup")
class ConstantWithWarmupSchedule(WarmupSchedule):
    """Grows linearly over the warm-up, then stays constant."""

    def decay(self, state: ScheduleState) -> float:
        return 1.0


@final
@Schedule.register("cosine_with_warmup")
class CosineWithWarmupSchedule(WarmupSchedule):
    """Grows linearly over the warm-up, then falls to 0 along half a cosine."""

    needs_num_steps = True

    def decay(self, state: ScheduleState) -> float:
        assert state.num_steps is not None
        done = (state.step - self.warmup_steps) / max(1, state.num_steps - self.warmup_steps)
        return 0.5 * (1 + math.cos(math.pi * min(1.0, done)))


@final
@Schedule.register("noam")
@dataclass(frozen=True)
class NoamSchedule(Schedule):
    """`factor * model_size^-0.5 * min(step^-0.5, step * warmup_steps^-1.5)` (Vaswani 2017).

    Args:
        model_size: the dimension of the model.
        warmup_steps: the update with the largest rate.
        factor: constant factor.
    """

    model_size: Dim
    warmup_steps: Count
    factor: Annotated[float, Gt(0)] = 1.0

    def multiplier(self, state: ScheduleState) -> float:
        step = state.step + 1
        slope = min(step**-0.5, step * self.warmup_steps**-1.5)
        return float(self.factor * self.model_size**-0.5 * slope)


@final
@Schedule.register("exponential")
@dataclass(frozen=True)
class ExponentialSchedule(Schedule):
    """Multiplies the rate by `gamma` after each epoch.

    Args:
        gamma: factor per epoch.
    """

    gamma: Annotated[float, Gt(0)]

    def multiplier(self, state: ScheduleState) -> float:
        return float(self.gamma**state.epoch)


@final
@Schedule.register("reduce_on_plateau")
@dataclass(frozen=True)
class ReduceOnPlateauSchedule(Schedule):
    """Multiplies the rate by `factor` whenever the validation metric stops improving.

    Args:
        factor: factor of each reduction.
        patience: number of evaluations without improvement that are tolerated.
        threshold: minimum improvement, relative to the best score.
    """

    needs_scores = True

    factor: Annotated[float, Gt(0), Lt(1)] = 0.1
    patience: CountOrZero = 10
    threshold: Annotated[float, Ge(0)] = 1e-4

    def multiplier(self, state: ScheduleState) -> float:
        best, waited, reductions = -math.inf, 0, 0
        for score in state.scores:
            is_better = math.isinf(best) or score > best + abs(best) * self.threshold
            best, waited = (score, 0) if is_better else (best, waited + 1)
            if waited > self.patience:
                reductions, waited = reductions + 1, 0
        return float(self.factor**reductions)


@final
@Schedule.register("slanted_triangular")
@dataclass(frozen=True)
class SlantedTriangularSchedule(Schedule):
    """A short increase, then a long decay (Howard and Ruder 2018, equation 3).

    Args:
        cut_frac: fraction of the steps in which the rate increases.
        ratio: the largest rate divided by the smallest.
    """

    needs_num_steps = True

    cut_frac: Annotated[float, Gt(0), Lt(1)] = 0.1
    ratio: Annotated[int, Gt(1), Le(MAX_COUNT)] = 32

    def multiplier(self, state: ScheduleState) -> float:
        assert state.num_steps is not None
        cut = max(1, int(state.num_steps * self.cut_frac))
        fall = max(1, state.num_steps - cut)
        fraction = state.step / cut if state.step < cut else 1 - (state.step - cut) / fall
        return (1 + max(0.0, fraction) * (self.ratio - 1)) / self.ratio


@final
@Schedule.register("multi_step")
@dataclass(frozen=True)
class MultiStepSchedule(Schedule):
    """Multiplies the rate by `gamma` at each milestone.

    Args:
        milestones: epochs at whose start the rate is multiplied, in ascending order.
        gamma: factor at each milestone.
    """

    milestones: list[Count]
    gamma: Annotated[float, Gt(0)] = 0.1

    def __post_init__(self) -> None:
        if any(later <= earlier for earlier, later in pairwise(self.milestones)):
            raise ValueError(f"milestones must be in ascending order, not {self.milestones}")

    def multiplier(self, state: ScheduleState) -> float:
        passed = sum(milestone <= state.epoch for milestone in self.milestones)
        return float(self.gamma**passed)
