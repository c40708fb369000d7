"""The family of regularizers, which penalize parameters in the training loss."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, TypeAlias, final

from annotated_types import Ge
from torch import Tensor

from elmo_framework.config.patterns import Regex
from elmo_framework.config.registry import Registrable
from elmo_framework.config.types import Lazy


class Regularizer(Registrable, ABC):
    """Penalizes a parameter."""

    default_member = "l2"

    @abstractmethod
    def penalty(self, parameter: Tensor) -> Tensor:
        """Return a scalar to add to the training loss."""


Regularizers: TypeAlias = list[tuple[Regex, Lazy[Regularizer]]]
"""Rules for parameters: the first expression that matches a part of the name applies."""


@final
@Regularizer.register("l1")
@dataclass(frozen=True)
class L1(Regularizer):
    """alpha * sum |w|.

    Args:
        alpha: weight of the penalty.
    """

    alpha: Annotated[float, Ge(0)] = 0.01

    def penalty(self, parameter: Tensor) -> Tensor:
        """Return the penalty."""
        return self.alpha * parameter.abs().sum()


@final
@Regularizer.register("l2")
@dataclass(frozen=True)
class L2(Regularizer):
    """alpha * sum w^2.

    An optimizer's `weight_decay` of 2 * alpha has the same gradient.

    Args:
        alpha: weight of the penalty.
    """

    alpha: Annotated[float, Ge(0)] = 0.01

    def penalty(self, parameter: Tensor) -> Tensor:
        """Return the penalty."""
        return self.alpha * parameter.square().sum()
