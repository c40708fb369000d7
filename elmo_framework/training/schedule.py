"""The family of learning-rate schedules, each a function of how far training is.

A schedule has no state: what it says follows from the step and from the scores so far, so that
a resumed run needs nothing but those.
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
    """How far training is.

    Attributes:
        step: the update that comes next, from 0.
        num_steps: how many updates there will be, if that is known.
        epoch: the epoch that the update belongs to, from 0.
        scores: the validation metric at each evaluation so far; larger is better.
    """

    step: int
    num_steps: int | None = None
    epoch: int = 0
    scores: Sequence[float] = ()


class Schedule(Registrable, ABC):
    """What the optimizer's learning rate is multiplied by.

    Attributes:
        needs_num_steps: whether training must have a known end.
        needs_scores: whether there must be validation data.
    """

    default_member = "constant"
    needs_num_steps = False
    needs_scores = False

    @abstractmethod
    def multiplier(self, moment: ScheduleState) -> float:
        """Return the factor for the update that comes next."""


@final
@Schedule.register("constant")
class ConstantSchedule(Schedule):
    """The learning rate as the optimizer has it."""

    def multiplier(self, moment: ScheduleState) -> float:
        """Return 1."""
        return 1.0


@final
@Schedule.register("linear_with_warmup")
@dataclass(frozen=True)
class LinearWithWarmupSchedule(Schedule):
    """Grows linearly over the warm-up, then falls linearly to 0 at the last step.

    Args:
        warmup_steps: updates until the full rate is reached.
    """

    needs_num_steps = True

    warmup_steps: CountOrZero = 0

    def multiplier(self, moment: ScheduleState) -> float:
        """Return the factor of the triangle."""
        if moment.step < self.warmup_steps:
            return (moment.step + 1) / self.warmup_steps
        assert moment.num_steps is not None
        left = moment.num_steps - moment.step
        return max(0.0, left / max(1, moment.num_steps - self.warmup_steps))


@final
@Schedule.register("constant_with_warmup")
@dataclass(frozen=True)
class ConstantWithWarmupSchedule(Schedule):
    """Grows linearly over the warm-up, then stays.

    Args:
        warmup_steps: updates until the full rate is reached.
    """

    warmup_steps: CountOrZero = 0

    def multiplier(self, moment: ScheduleState) -> float:
        """Return the share of the warm-up that is done."""
        return min(1.0, (moment.step + 1) / max(1, self.warmup_steps))


@final
@Schedule.register("cosine_with_warmup")
@dataclass(frozen=True)
class CosineWithWarmupSchedule(Schedule):
    """Grows linearly over the warm-up, then falls to 0 along half a cosine.

    Args:
        warmup_steps: updates until the full rate is reached.
    """

    needs_num_steps = True

    warmup_steps: CountOrZero = 0

    def multiplier(self, moment: ScheduleState) -> float:
        """Return the factor of the curve."""
        if moment.step < self.warmup_steps:
            return (moment.step + 1) / self.warmup_steps
        assert moment.num_steps is not None
        done = (moment.step - self.warmup_steps) / max(1, moment.num_steps - self.warmup_steps)
        return 0.5 * (1 + math.cos(math.pi * min(1.0, done)))


@final
@Schedule.register("noam")
@dataclass(frozen=True)
class NoamSchedule(Schedule):
    """`factor * model_size^-0.5 * min(step^-0.5, step * warmup_steps^-1.5)` (Vaswani 2017).

    Args:
        model_size: the width of the model.
        warmup_steps: the update with the largest rate.
        factor: multiplies the whole.
    """

    model_size: Dim
    warmup_steps: Count
    factor: Annotated[float, Gt(0)] = 1.0

    def multiplier(self, moment: ScheduleState) -> float:
        """Return the factor of the equation."""
        step = moment.step + 1
        slope = min(step**-0.5, step * self.warmup_steps**-1.5)
        return float(self.factor * self.model_size**-0.5 * slope)


@final
@Schedule.register("exponential")
@dataclass(frozen=True)
class ExponentialSchedule(Schedule):
    """Multiplies the rate by `gamma` after each epoch.

    Args:
        gamma: the factor of one epoch.
    """

    gamma: Annotated[float, Gt(0)]

    def multiplier(self, moment: ScheduleState) -> float:
        """Return gamma to the power of the epoch."""
        return float(self.gamma**moment.epoch)


@final
@Schedule.register("reduce_on_plateau")
@dataclass(frozen=True)
class ReduceOnPlateauSchedule(Schedule):
    """Multiplies the rate by `factor` whenever the validation metric stops to improve.

    Args:
        factor: what each reduction multiplies by.
        patience: evaluations without improvement that are waited for.
        threshold: how much better counts as an improvement, relative to the best score.
    """

    needs_scores = True

    factor: Annotated[float, Gt(0), Lt(1)] = 0.1
    patience: CountOrZero = 10
    threshold: Annotated[float, Ge(0)] = 1e-4

    def multiplier(self, moment: ScheduleState) -> float:
        """Return the factor after the reductions that the scores ask for."""
        best, waited, reductions = -math.inf, 0, 0
        for score in moment.scores:
            is_better = math.isinf(best) or score > best + abs(best) * self.threshold
            best, waited = (score, 0) if is_better else (best, waited + 1)
            if waited > self.patience:
                reductions, waited = reductions + 1, 0
        return float(self.factor**reductions)


@final
@Schedule.register("slanted_triangular")
@dataclass(frozen=True)
class SlantedTriangularSchedule(Schedule):
    """A short rise, then a long fall (Howard and Ruder 2018, equation 3).

    Args:
        cut_frac: share of the steps in which the rate rises.
        ratio: how much smaller the smallest rate is.
    """

    needs_num_steps = True

    cut_frac: Annotated[float, Gt(0), Lt(1)] = 0.1
    ratio: Annotated[int, Gt(1), Le(MAX_COUNT)] = 32

    def multiplier(self, moment: ScheduleState) -> float:
        """Return the factor of the equation."""
        assert moment.num_steps is not None
        cut = max(1, int(moment.num_steps * self.cut_frac))
        fall = max(1, moment.num_steps - cut)
        share = moment.step / cut if moment.step < cut else 1 - (moment.step - cut) / fall
        return (1 + max(0.0, share) * (self.ratio - 1)) / self.ratio


@final
@Schedule.register("multi_step")
@dataclass(frozen=True)
class MultiStepSchedule(Schedule):
    """Multiplies the rate by `gamma` at each milestone.

    Args:
        milestones: epochs at whose start the rate falls, in ascending order.
        gamma: the factor of one milestone.
    """

    milestones: list[Count]
    gamma: Annotated[float, Gt(0)] = 0.1

    def __post_init__(self) -> None:
        if any(later <= earlier for earlier, later in pairwise(self.milestones)):
            raise ValueError(f"milestones are not in ascending order: {self.milestones}")

    def multiplier(self, moment: ScheduleState) -> float:
        """Return gamma to the power of the milestones that are passed."""
        passed = sum(milestone <= moment.epoch for milestone in self.milestones)
        return float(self.gamma**passed)
