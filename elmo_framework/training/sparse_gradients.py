"""Gradients that hold the rows of a large table that a batch has touched, and no others.

A sampled softmax touches some thousands of its rows in a step. A gradient of the whole table, of
which nearly all is zero, would be written, measured and read by the optimizer every time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from elmo_framework.model.model import Model
from elmo_framework.nn.part import TensorPart

# Against a division by zero, as in `torch.nn.utils.clip_grad_norm_`.
_SMALLEST = 1e-6


class RowAdagrad(torch.optim.Adagrad):
    """Adagrad that also takes sparse gradients: rows that a gradient leaves out stay as they are.

    The same as with a gradient that is zero there, unless weights decay. The state is that of
    `torch.optim.Adagrad`, whichever kind the gradients are.
    """

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Make an update; sparse gradients are gone afterwards."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None and parameter.grad.is_sparse:
                    self._change_rows(parameter, group)
                    parameter.grad = None
        loss: float | None = super().step(closure)
        return loss

    def _change_rows(self, parameter: nn.Parameter, group: dict[str, Any]) -> None:
        assert parameter.grad is not None
        gradient = parameter.grad.coalesce()
        rows, values = gradient.indices()[0], gradient.values()
        squares = self.state[parameter]["sum"]
        squares.index_add_(0, rows, values * values)
        change = values / squares.index_select(0, rows).sqrt_().add_(group["eps"])
        parameter.index_add_(0, rows, change, alpha=-group["lr"])


def allow_sparse_gradients(
    model: Model[Any], optimizer: torch.optim.Optimizer, device: torch.device, *, is_alone: bool
) -> None:
    """Let modules with large tables make sparse gradients where that is faster.

    Args:
        model: to be trained.
        optimizer: of its parameters.
        device: of the model. On a GPU the number of different rows would have to be waited for.
        is_alone: whether no other process has gradients to be averaged with.
    """
    takes_rows = isinstance(optimizer, RowAdagrad) and not any(
        group["weight_decay"] for group in optimizer.param_groups
    )
    for module in model.modules():
        if isinstance(module, TensorPart):
            module.has_sparse_gradients = takes_rows and is_alone and device.type == "cpu"


def clip_norm(parameters: Iterable[nn.Parameter], largest: float) -> Tensor:
    """Scale all gradients so that their norm, taken together, is at most `largest`.

    Returns:
        The norm that they had.
    """
    gradients = []
    for parameter in parameters:
        if parameter.grad is not None:
            if parameter.grad.is_sparse:
                parameter.grad = parameter.grad.coalesce()
            gradients.append(_values(parameter.grad))
    norm = nn.utils.get_total_norm(gradients)
    scale = (largest / (norm + _SMALLEST)).clamp(max=1.0)
    torch._foreach_mul_(gradients, scale)
    return norm


def clip_values(parameters: Iterable[nn.Parameter], largest: float) -> None:
    """Cut every number in the gradients to the range from `-largest` to `largest`."""
    for parameter in parameters:
        if parameter.grad is not None:
            _values(parameter.grad).clamp_(-largest, largest)


def _values(gradient: Tensor) -> Tensor:
    """Return the numbers of a gradient, a sparse one being coalesced."""
    return gradient.values() if gradient.is_sparse else gradient
