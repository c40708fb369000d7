"""Sparse gradients of large embedding tables: only the rows that a batch has used.

A sampled softmax uses a few thousand rows per step. A dense gradient, nearly all zero, would be
written, clipped and read by the optimizer at every step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from elmo_framework.kernels.backend import uses_cpu_code
from elmo_framework.model.model import Model
from elmo_framework.nn.part import TensorPart

# Avoids a division by zero, as in `torch.nn.utils.clip_grad_norm_`.
_SMALLEST = 1e-6


class RowAdagrad(torch.optim.Adagrad):
    """Adagrad that also accepts sparse gradients: rows without a gradient are unchanged.

    Without weight decay the result is that of a dense gradient with zeros in these rows. The
    state is that of `torch.optim.Adagrad` for both kinds of gradients.

    Attributes:
        grad_scale: by which the next step divides all gradients, as PyTorch's fused optimizers do;
            None for 1.
    """

    grad_scale: Tensor | None = None

    @property
    def takes_scale(self) -> bool:
        """Whether `grad_scale` is divided by without another pass over the gradients."""
        return all(group["fused"] for group in self.param_groups)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Update the parameters; sparse gradients are set to None."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None and parameter.grad.is_sparse:
                    self._change_rows(parameter, group)
                    parameter.grad = None
        loss: float | None = super().step(closure)
        self.grad_scale = None
        return loss

    def _change_rows(self, parameter: nn.Parameter, group: dict[str, Any]) -> None:
        assert parameter.grad is not None
        gradient = coalesced(parameter.grad)
        rows, values = gradient.indices()[0], gradient.values()
        if self.grad_scale is not None:
            values = values / self.grad_scale
        squares = self.state[parameter]["sum"]
        squares.index_add_(0, rows, values * values)
        change = values / squares.index_select(0, rows).sqrt_().add_(group["eps"])
        if isinstance(group["lr"], Tensor):  # of a recorded update
            parameter.index_add_(0, rows, change * -group["lr"])
        else:
            parameter.index_add_(0, rows, change, alpha=-group["lr"])


def allow_sparse_gradients(
    model: Model[Any], optimizer: torch.optim.Optimizer, *, is_alone: bool
) -> None:
    """Let modules with large tables make sparse gradients where that is faster.

    Args:
        model: to be trained.
        optimizer: of its parameters.
        is_alone: whether this is the only process, so that no gradients are averaged.
    """
    takes_rows = isinstance(optimizer, RowAdagrad) and not any(
        group["weight_decay"] for group in optimizer.param_groups
    )
    for module in model.modules():
        if isinstance(module, TensorPart):
            module.has_sparse_gradients = takes_rows and is_alone


def clip_norm(
    parameters: Iterable[nn.Parameter],
    largest: float,
    optimizer: torch.optim.Optimizer | None = None,
) -> Tensor:
    """Scale all gradients to a total norm of at most `largest`; return the norm before that.

    Args:
        parameters: with gradients.
        largest: norm.
        optimizer: its next step scales them if it can do so without another pass, on a GPU.
    """
    gradients = []
    for parameter in parameters:
        if parameter.grad is not None:
            if parameter.grad.is_sparse:
                parameter.grad = coalesced(parameter.grad)
            gradients.append(_values(parameter.grad))
    norm = nn.utils.get_total_norm(gradients)
    scale = (largest / (norm + _SMALLEST)).clamp(max=1.0)
    if isinstance(optimizer, RowAdagrad) and optimizer.takes_scale and not uses_cpu_code(norm):
        optimizer.grad_scale = scale.reciprocal().float()
    elif gradients:
        torch._foreach_mul_(gradients, scale)
    return norm


def coalesced(gradient: Tensor) -> Tensor:
    """Sum the values of equal rows of a sparse gradient.

    On accelerators the number of rows stays the same, as counting the distinct ones would wait for
    the device: the rows that remain repeat the first one, with zeros as values. The sums do not
    depend on the order in which threads finish.
    """
    if gradient.is_coalesced() or uses_cpu_code(gradient):
        return gradient.coalesce()
    all_rows, values = gradient._indices()[0], gradient._values()
    ordered, order = all_rows.sort()
    slots = functional.pad(ordered[1:] != ordered[:-1], (1, 0)).cumsum(0)
    rows = ordered[:1].expand_as(ordered).scatter(0, slots, ordered)
    slots = torch.empty_like(slots).scatter_(0, order, slots)
    sums = torch.ops.aten.embedding_dense_backward(values, slots, len(slots), -1, False)
    return torch.sparse_coo_tensor(
        rows[None], sums, gradient.shape, is_coalesced=True, check_invariants=False
    )


def clip_values(parameters: Iterable[nn.Parameter], largest: float) -> None:
    """Clip every number in the gradients to the range from `-largest` to `largest`."""
    gradients = [_values(each.grad) for each in parameters if each.grad is not None]
    if gradients:
        torch._foreach_clamp_min_(gradients, -largest)
        torch._foreach_clamp_max_(gradients, largest)


def _values(gradient: Tensor) -> Tensor:
    """Return the values of a gradient; a sparse one must be coalesced."""
    return gradient.values() if gradient.is_sparse else gradient
