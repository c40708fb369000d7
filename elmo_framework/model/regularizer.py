"""The family of regularizers, which penalize parameters in the training loss."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Annotated, TypeAlias, final

from annotated_types import Ge
from torch import Tensor

from elmo_framework.config.patterns import Regex
from elmo_framework.config.registry import Registrable
from elmo_framework.config.types import Lazy


class Regularizer(Registrable, ABC):
    """Penalizes a parameter.

    Args:
        alpha: weight of the penalty.
    """

    default_member = "l2"

    @abstractmethod
    def penalty(self, parameter: Tensor) -> Tensor:
        """Return a scalar to add to the training loss."""


Regularizers: TypeAlias = list[tuple[Regex, Lazy[Regularizer]]]
"""Rules for parameters: the first expression that matches a part of the name applies."""


@final
class RegularizerFunction(Regularizer):
    """Penalizes a parameter with a function of its values."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        self._function = function

    def penalty(self, parameter: Tensor) -> Tensor:
        return self._function(parameter)


@Regularizer.register("l1")
def l1(alpha: Annotated[float, Ge(0)] = 0.01) -> Regularizer:
    """`alpha * sum |w|`."""
    return RegularizerFunction(lambda parameter: alpha * parameter.abs().sum())


@Regularizer.register("l2")
def l2(alpha: Annotated[float, Ge(0)] = 0.01) -> Regularizer:
    """`alpha * sum w^2`.

    An optimizer's `weight_decay` of 2 * alpha has the same gradient.
    """
    return RegularizerFunction(lambda parameter: alpha * parameter.square().sum())
