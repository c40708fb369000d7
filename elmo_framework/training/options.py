"""Options of the `trainer` block of a config."""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass
from typing import Annotated, Literal, final

from annotated_types import Gt, Lt

from elmo_framework.config.patterns import Regex
from elmo_framework.config.registry import Registrable
from elmo_framework.config.types import Count, CountOrZero, Default, Lazy
from elmo_framework.training.callback import Callback
from elmo_framework.training.optimizer import Optimizer
from elmo_framework.training.parameter_groups import ParameterGroup
from elmo_framework.training.schedule import Schedule
from elmo_framework.training.unfreezing import Unfreezing

Minutes = Annotated[float, Gt(0)]


@dataclass(frozen=True)
class Interval:
    """Interval in steps, epochs or minutes; due as soon as one of them has passed.

    Attributes:
        steps: number of updates.
        epochs: number of epochs; due at the end of an epoch.
        minutes: wall-clock time; a run that depends on the clock is not reproducible.
    """

    steps: Count | None = None
    epochs: Count | None = None
    minutes: Minutes | None = None


@dataclass(frozen=True)
class MovingAverage:
    """An exponential moving average of the weights, used wherever the model is evaluated.

    Attributes:
        decay: weight of the old average at each step.
    """

    decay: Annotated[float, Gt(0), Lt(1)] = 0.9999


@dataclass(frozen=True)
class CheckpointPolicy:
    """Which checkpoints are written and kept.

    Attributes:
        keep_most_recent_by_count: how many recent checkpoints to keep, in addition to the best.
        save_every: when to write a checkpoint, in addition to those after each evaluation.
    """

    keep_most_recent_by_count: Count = 2
    save_every: Annotated[Interval, Default({})] = Interval()


class TrainerOptions(Registrable, ABC):
    """How a model is trained."""

    default_member = "gradient_descent"


@final
@TrainerOptions.register("gradient_descent")
@dataclass(frozen=True, kw_only=True)
class GradientDescent(TrainerOptions):
    """Training by gradient descent; it ends at the first limit that is reached.

    Args:
        optimizer: the optimizer of the weights.
        learning_rate_scheduler: the factor of the learning rate over the course of training.
        num_epochs: maximum number of times that the training data is read; null for no such limit.
        num_steps: maximum number of updates; null for no such limit.
        max_minutes: maximum time of training and evaluation; null for no such limit.
        patience: stop early after so many evaluations without a better score.
        validation_metric: the score that selects the best weights, after `+` when larger is
            better and `-` when smaller is better.
        evaluate_every: when to evaluate the model and write a checkpoint, in addition to the end.
        evaluate_at_start: whether to evaluate before the first update too, for example with
            `init_from`; these weights can then be the best.
        grad_norm: maximum norm of all gradients together; larger ones are scaled down to it.
        grad_clipping: maximum absolute value of a gradient, applied after `grad_norm`.
        num_gradient_accumulation_steps: batches whose gradients are averaged for one update.
        moving_average: an average of the weights, used for evaluation and saved.
        checkpointer: which checkpoints are kept.
        callbacks: training callbacks; they observe training and never change it.
        device: `auto` uses a GPU if there is one.
        precision: `bfloat16` runs the products of the forward pass in that type, and `auto` does
            so on a GPU that has it.
        reduce_dtype: the type in which several processes exchange gradients; in `bfloat16` they
            are half as many bytes, and each is rounded before it is averaged.
        no_grad: regular expressions; parameters with a matching name are not trained.
        parameter_groups: parameters with a learning rate or a weight decay of their own.
        unfreezing: gradual unfreezing and discriminative rates of the layers of biLMs and
            transformers that are trained with the task; null trains all with one rate.
    """

    optimizer: Annotated[Optimizer, Default("adam")]
    learning_rate_scheduler: Annotated[Schedule, Default("constant")]
    callbacks: Annotated[list[Lazy[Callback]], Default(["tensorboard"])]
    evaluate_every: Annotated[Interval, Default({"epochs": 1})]
    checkpointer: Annotated[CheckpointPolicy, Default({})]
    num_epochs: Count | None = 20
    num_steps: Count | None = None
    max_minutes: Minutes | None = None
    patience: CountOrZero | None = None
    validation_metric: str = "-loss"
    evaluate_at_start: bool = False
    grad_norm: Annotated[float, Gt(0)] | None = None
    grad_clipping: Annotated[float, Gt(0)] | None = None
    num_gradient_accumulation_steps: Count = 1
    moving_average: MovingAverage | None = None
    device: Literal["auto", "cpu", "cuda"] = "auto"
    precision: Literal["auto", "float32", "bfloat16"] = "float32"
    reduce_dtype: Literal["float32", "bfloat16"] = "float32"
    no_grad: Annotated[list[Regex], Default([])]
    parameter_groups: Annotated[list[ParameterGroup], Default([])]
    unfreezing: Unfreezing | None = None

    @property
    def averaged_decay(self) -> float | None:
        """Decay of the moving average; None without one."""
        return None if self.moving_average is None else self.moving_average.decay

    def __post_init__(self) -> None:
        if self.validation_metric[:1] not in ("+", "-"):
            raise ValueError(
                f"validation_metric is {self.validation_metric!r}; write '+' before the name when "
                "larger is better, '-' when smaller is"
            )
        if self.unfreezing is not None and self.parameter_groups:
            raise ValueError("unfreezing and parameter_groups both set rates; remove one of them")
        if self.num_epochs is None and self.num_steps is None and self.max_minutes is None:
            raise ValueError("one of num_epochs, num_steps and max_minutes must limit training")
        is_endless = self.num_epochs is None and self.num_steps is None
        if is_endless and self.learning_rate_scheduler.needs_num_steps:
            raise ValueError("this learning_rate_scheduler needs num_epochs or num_steps")
