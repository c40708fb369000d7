"""The family of optimizers; torch's, under AllenNLP's names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Annotated, final

import torch
from annotated_types import Ge, Gt, Lt
from torch import nn

from elmo_framework.common.registry import Registrable

Rate = Annotated[float, Gt(0)]
Decay = Annotated[float, Ge(0), Lt(1)]
Penalty = Annotated[float, Ge(0)]


class Optimizer(Registrable, ABC):
    """What changes parameters after each backward pass."""

    default_member = "adam"

    @abstractmethod
    def create(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        """Return torch's optimizer over some parameters."""


@final
@Optimizer.register("adagrad")
class Adagrad(Optimizer):
    """Adagrad: `a += g^2; w -= lr * g / sqrt(a)`, as the paper's biLM was trained.

    Args:
        lr: learning rate.
        initial_accumulator_value: what `a` starts from; TensorFlow's users have 1.0.
        eps: added to the root.
        weight_decay: weight of an L2 penalty.
    """

    def __init__(
        self,
        lr: Rate = 0.2,
        initial_accumulator_value: Penalty = 1.0,
        eps: Penalty = 1e-10,
        weight_decay: Penalty = 0.0,
    ) -> None:
        self.lr, self.eps, self.weight_decay = lr, eps, weight_decay
        self.initial_accumulator_value = initial_accumulator_value

    def create(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        """Return torch's Adagrad."""
        return torch.optim.Adagrad(
            parameters,
            lr=self.lr,
            initial_accumulator_value=self.initial_accumulator_value,
            eps=self.eps,
            weight_decay=self.weight_decay,
        )


@final
@Optimizer.register("adam")
class Adam(Optimizer):
    """Adam (Kingma and Ba 2015).

    Args:
        lr: learning rate.
        betas: decay of the first and of the second moment.
        eps: added to the root.
        weight_decay: weight of an L2 penalty.
    """

    def __init__(
        self,
        lr: Rate = 0.001,
        betas: tuple[Decay, Decay] = (0.9, 0.999),
        eps: Penalty = 1e-8,
        weight_decay: Penalty = 0.0,
    ) -> None:
        self.lr, self.betas, self.eps, self.weight_decay = lr, betas, eps, weight_decay

    def create(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        """Return torch's Adam."""
        return torch.optim.Adam(
            parameters,
            lr=self.lr,
            betas=self.betas,
            eps=self.eps,
            weight_decay=self.weight_decay,
        )


@final
@Optimizer.register("adamw")
class AdamW(Optimizer):
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019).

    Args:
        lr: learning rate.
        betas: decay of the first and of the second moment.
        eps: added to the root.
        weight_decay: share of each weight that is taken off, times the learning rate.
    """

    def __init__(
        self,
        lr: Rate = 0.001,
        betas: tuple[Decay, Decay] = (0.9, 0.999),
        eps: Penalty = 1e-8,
        weight_decay: Penalty = 0.01,
    ) -> None:
        self.lr, self.betas, self.eps, self.weight_decay = lr, betas, eps, weight_decay

    def create(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        """Return torch's AdamW."""
        return torch.optim.AdamW(
            parameters,
            lr=self.lr,
            betas=self.betas,
            eps=self.eps,
            weight_decay=self.weight_decay,
        )


@final
@Optimizer.register("adadelta")
class Adadelta(Optimizer):
    """Adadelta (Zeiler 2012).

    Args:
        lr: learning rate.
        rho: decay of the running averages.
        eps: added to the root.
        weight_decay: weight of an L2 penalty.
    """

    def __init__(
        self,
        lr: Rate = 1.0,
        rho: Decay = 0.9,
        eps: Penalty = 1e-6,
        weight_decay: Penalty = 0.0,
    ) -> None:
        self.lr, self.rho, self.eps, self.weight_decay = lr, rho, eps, weight_decay

    def create(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        """Return torch's Adadelta."""
        return torch.optim.Adadelta(
            parameters, lr=self.lr, rho=self.rho, eps=self.eps, weight_decay=self.weight_decay
        )


@final
@Optimizer.register("sgd")
class Sgd(Optimizer):
    """Stochastic gradient descent.

    Args:
        lr: learning rate.
        momentum: share of the last update that is kept.
        weight_decay: weight of an L2 penalty.
        nesterov: whether the gradient is taken after the momentum's step.
    """

    def __init__(
        self,
        lr: Rate,
        momentum: Decay = 0.0,
        weight_decay: Penalty = 0.0,
        nesterov: bool = False,
    ) -> None:
        if nesterov and not momentum:
            raise ValueError("nesterov needs a momentum above 0")
        self.lr, self.momentum = lr, momentum
        self.weight_decay, self.nesterov = weight_decay, nesterov

    def create(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        """Return torch's SGD."""
        return torch.optim.SGD(
            parameters,
            lr=self.lr,
            momentum=self.momentum,
            weight_decay=self.weight_decay,
            nesterov=self.nesterov,
        )


@final
@Optimizer.register("rmsprop")
class RmsProp(Optimizer):
    """RMSprop.

    Args:
        lr: learning rate.
        alpha: decay of the running average.
        eps: added to the root.
        weight_decay: weight of an L2 penalty.
        momentum: share of the last update that is kept.
    """

    def __init__(
        self,
        lr: Rate = 0.01,
        alpha: Decay = 0.99,
        eps: Penalty = 1e-8,
        weight_decay: Penalty = 0.0,
        momentum: Decay = 0.0,
    ) -> None:
        self.lr, self.alpha, self.eps = lr, alpha, eps
        self.weight_decay, self.momentum = weight_decay, momentum

    def create(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        """Return torch's RMSprop."""
        return torch.optim.RMSprop(
            parameters,
            lr=self.lr,
            alpha=self.alpha,
            eps=self.eps,
            weight_decay=self.weight_decay,
            momentum=self.momentum,
        )
