"""PyTorch's optimizers under AllenNLP's names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import partial
from typing import Annotated, Any, TypeAlias, final

import torch
from annotated_types import Ge, Gt, Lt
from torch import nn

from elmo_framework.config.registry import Registrable
from elmo_framework.training.sparse_gradients import RowAdagrad

Rate = Annotated[float, Gt(0)]
Decay = Annotated[float, Ge(0), Lt(1)]
Betas = tuple[Decay, Decay]
Penalty = Annotated[float, Ge(0)]
Parameters: TypeAlias = Iterable[nn.Parameter] | Iterable[dict[str, Any]]
"""Parameters, or groups of them as `torch.optim` takes them."""


class Optimizer(Registrable, ABC):
    """Base class for optimizers: hyperparameters that create one of PyTorch's.

    Args:
        lr: learning rate.
        betas: decay of the first and of the second moment.
        eps: added to the root.
        momentum: factor of the previous update that is added to the next.
        weight_decay: weight of an L2 penalty.
    """

    default_member = "adam"

    @abstractmethod
    def create(self, parameters: Parameters) -> torch.optim.Optimizer:
        """Create the optimizer of some parameters, or of several groups of them."""


@final
class OptimizerFunction(Optimizer):
    """Creates an optimizer by a function of the parameters, such as a class of `torch.optim`."""

    def __init__(
        self, function: Callable[..., torch.optim.Optimizer], **hyperparameters: Any
    ) -> None:
        self._function, self._hyperparameters = function, hyperparameters

    def create(self, parameters: Parameters) -> torch.optim.Optimizer:
        return self._function(parameters, **self._hyperparameters)


@Optimizer.register("adagrad")
def adagrad(
    lr: Rate = 0.2,
    initial_accumulator_value: Penalty = 1.0,
    eps: Penalty = 1e-10,
    weight_decay: Penalty = 0.0,
) -> Optimizer:
    """Adagrad: `a += g^2; w -= lr * g / sqrt(a)`, as the paper's biLM was trained.

    Args:
        initial_accumulator_value: initial value of `a`; 1.0 is usual in TensorFlow.
    """
    return OptimizerFunction(
        partial(_fused, RowAdagrad),
        lr=lr,
        initial_accumulator_value=initial_accumulator_value,
        eps=eps,
        weight_decay=weight_decay,
    )


def _fused(
    kind: Callable[..., torch.optim.Optimizer], parameters: Parameters, **hyperparameters: Any
) -> torch.optim.Optimizer:
    """Create an optimizer; on the CPU its fused variant, which reads each parameter once.

    That one takes the memory of a parameter for contiguous, whatever its strides are.
    """
    all_parameters: list[Any] = list(parameters)
    groups = [each["params"] if isinstance(each, dict) else [each] for each in all_parameters]
    is_fused = all(
        parameter.device.type == "cpu" and parameter.is_contiguous()
        for group in groups
        for parameter in group
    )
    return kind(all_parameters, **hyperparameters, fused=True if is_fused else None)


@Optimizer.register("adam")
def adam(
    lr: Rate = 0.001, betas: Betas = (0.9, 0.999), eps: Penalty = 1e-8, weight_decay: Penalty = 0.0
) -> Optimizer:
    """Adam (Kingma and Ba 2015)."""
    return OptimizerFunction(
        partial(_fused, torch.optim.Adam), lr=lr, betas=betas, eps=eps, weight_decay=weight_decay
    )


@Optimizer.register("adamw")
def adamw(
    lr: Rate = 0.001, betas: Betas = (0.9, 0.999), eps: Penalty = 1e-8, weight_decay: Penalty = 0.01
) -> Optimizer:
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019).

    Args:
        weight_decay: fraction of each weight subtracted at each update, times the learning rate.
    """
    return OptimizerFunction(
        partial(_fused, torch.optim.AdamW), lr=lr, betas=betas, eps=eps, weight_decay=weight_decay
    )


@Optimizer.register("adadelta")
def adadelta(
    lr: Rate = 1.0, rho: Decay = 0.9, eps: Penalty = 1e-6, weight_decay: Penalty = 0.0
) -> Optimizer:
    """Adadelta (Zeiler 2012).

    Args:
        rho: decay of the running averages.
    """
    return OptimizerFunction(
        torch.optim.Adadelta, lr=lr, rho=rho, eps=eps, weight_decay=weight_decay
    )


@Optimizer.register("sgd")
def sgd(
    lr: Rate, momentum: Decay = 0.0, weight_decay: Penalty = 0.0, nesterov: bool = False
) -> Optimizer:
    """Stochastic gradient descent.

    Args:
        nesterov: whether to use Nesterov momentum.
    """
    if nesterov and not momentum:
        raise ValueError("nesterov needs a momentum above 0")
    return OptimizerFunction(
        torch.optim.SGD, lr=lr, momentum=momentum, weight_decay=weight_decay, nesterov=nesterov
    )


@Optimizer.register("rmsprop")
def rmsprop(
    lr: Rate = 0.01,
    alpha: Decay = 0.99,
    eps: Penalty = 1e-8,
    weight_decay: Penalty = 0.0,
    momentum: Decay = 0.0,
) -> Optimizer:
    """RMSprop.

    Args:
        alpha: decay of the running average.
    """
    return OptimizerFunction(
        torch.optim.RMSprop,
        lr=lr,
        alpha=alpha,
        eps=eps,
        weight_decay=weight_decay,
        momentum=momentum,
    )
