"""What a config says about training."""

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
from elmo_framework.training.schedule import Schedule

Minutes = Annotated[float, Gt(0)]


@dataclass(frozen=True)
class Interval:
    """When something is due: whatever of the three comes first.

    Attributes:
        steps: after so many updates.
        epochs: at the end of so many epochs.
        minutes: after so many minutes; a run that depends on the clock is not repeatable.
    """

    steps: Count | None = None
    epochs: Count | None = None
    minutes: Minutes | None = None


@dataclass(frozen=True)
class MovingAverage:
    """An exponential moving average of the weights, used wherever the model is evaluated.

    Attributes:
        decay: what is kept of the average at each step.
    """

    decay: Annotated[float, Gt(0), Lt(1)] = 0.9999


@dataclass(frozen=True)
class CheckpointPolicy:
    """Which checkpoints are written and kept.

    Attributes:
        keep_most_recent_by_count: how many of the last are kept, besides the best.
        save_every: when one is written besides each evaluation.
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
        optimizer: what changes the weights.
        learning_rate_scheduler: what the learning rate is multiplied by as training goes on.
        num_epochs: passes over the training data, if they are a limit.
        num_steps: updates, if they are a limit.
        max_minutes: minutes of training and evaluation, if they are a limit.
        patience: evaluations without a better score after which training stops.
        validation_metric: the score that says which weights are best; `+` before its name when
            larger is better, `-` when smaller is.
        evaluate_every: when the model is evaluated and a checkpoint written, besides at the end.
        evaluate_at_start: whether the model is scored before the first update too, as where it goes
            on from `init_from`; those weights then count among the ones that may be best.
        grad_norm: the largest norm of all gradients together; they are scaled down to it.
        grad_clipping: the largest absolute value of a gradient, applied after `grad_norm`.
        num_gradient_accumulation_steps: batches whose gradients are averaged for one update.
        moving_average: an average of the weights to evaluate with and to keep.
        checkpointer: which checkpoints are kept.
        callbacks: callbacks of the training; they read and never steer.
        device: `auto` takes a GPU if there is one.
        precision: `bfloat16` runs the products of the forward pass in that type.
        no_grad: regular expressions; parameters with a matching name are not trained.
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
    precision: Literal["float32", "bfloat16"] = "float32"
    no_grad: Annotated[list[Regex], Default([])]

    @property
    def averaged_decay(self) -> float | None:
        """The decay of the moving average; None without one."""
        return None if self.moving_average is None else self.moving_average.decay

    def __post_init__(self) -> None:
        if self.validation_metric[:1] not in ("+", "-"):
            raise ValueError(
                f"validation_metric is {self.validation_metric!r}; write '+' before the name when "
                "larger is better, '-' when smaller is"
            )
        if self.num_epochs is None and self.num_steps is None and self.max_minutes is None:
            raise ValueError("one of num_epochs, num_steps and max_minutes must limit training")
        is_endless = self.num_epochs is None and self.num_steps is None
        if is_endless and self.learning_rate_scheduler.needs_num_steps:
            raise ValueError("this learning_rate_scheduler needs num_epochs or num_steps")
