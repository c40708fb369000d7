"""Sparse gradients of large embedding tables: only the rows that a batch has used.

A sampled softmax uses a few thousand rows per step. A dense gradient, nearly all zero, would be
written, clipped and read by the optimizer at every step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from elmo_framework.kernels.backend import uses_cpu_code
from elmo_framework.model.model import Model
from elmo_framework.nn.part import TensorPart

# Avoids a division by zero, as in `torch.nn.utils.clip_grad_norm_`.
_SMALLEST = 1e-6


class RowAdagrad(torch.optim.Adagrad):
    """Adagrad that also accepts sparse gradients: rows without a gradient are unchanged.

    Without weight decay the result is that of a dense gradient with zeros in these rows. The
    state is that of `torch.optim.Adagrad` for both kinds of gradients.
    """

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Update the parameters; sparse gradients are set to None."""
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
        device: of the model. On a GPU counting the distinct rows would synchronize with it.
        is_alone: whether this is the only process, so that no gradients are averaged.
    """
    takes_rows = isinstance(optimizer, RowAdagrad) and not any(
        group["weight_decay"] for group in optimizer.param_groups
    )
    for module in model.modules():
        if isinstance(module, TensorPart):
            module.has_sparse_gradients = takes_rows and is_alone and uses_cpu_code(device)


def clip_norm(parameters: Iterable[nn.Parameter], largest: float) -> Tensor:
    """Scale all gradients to a total norm of at most `largest`; return the norm before that."""
    gradients = []
    for parameter in parameters:
        if parameter.grad is not None:
            if parameter.grad.is_sparse:
                parameter.grad = parameter.grad.coalesce()
            gradients.append(_values(parameter.grad))
    norm = nn.utils.get_total_norm(gradients)
    scale = (largest / (norm + _SMALLEST)).clamp(max=1.0)
    if gradients:
        torch._foreach_mul_(gradients, scale)
    return norm


def clip_values(parameters: Iterable[nn.Parameter], largest: float) -> None:
    """Clip every number in the gradients to the range from `-largest` to `largest`."""
    for parameter in parameters:
        if parameter.grad is not None:
            _values(parameter.grad).clamp_(-largest, largest)


def _values(gradient: Tensor) -> Tensor:
    """Return the values of a gradient; a sparse one must be coalesced."""
    return gradient.values() if gradient.is_sparse else gradient
