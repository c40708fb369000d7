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

from elmo_framework.kernels import adagrad
from elmo_framework.kernels.backend import uses_cpu_code
from elmo_framework.model.model import Model
from elmo_framework.nn.part import TensorPart

# Avoids a division by zero, as in `torch.nn.utils.clip_grad_norm_`.
_SMALLEST = 1e-6


class RowAdagrad(torch.optim.Adagrad):
    """Adagrad that also accepts sparse gradients: rows without a gradient are unchanged.

    Without weight decay the result is that of a dense gradient with zeros in these rows. The
    state is that of `torch.optim.Adagrad` for both kinds of gradients. On accelerators an update
    reads nothing from the device and no number of the CPU changes, so that it can be recorded.

    Attributes:
        grad_scale: by which the next step divides all gradients, as PyTorch's fused optimizers do;
            None for 1. On accelerators only.
    """

    grad_scale: Tensor | None = None

    def __init__(self, parameters: Any, **hyperparameters: Any) -> None:
        super().__init__(parameters, **hyperparameters)
        self._move_steps()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state, of any device."""
        super().load_state_dict(state_dict)
        self._move_steps()

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Update the parameters; sparse gradients are set to None."""
        loss, is_on_cpu = None, True
        for group in self.param_groups:
            parameters = [each for each in group["params"] if each.grad is not None]
            rate = group["lr"]
            if parameters and not uses_cpu_code(parameters[0]):
                is_on_cpu = False
                if not isinstance(rate, Tensor):
                    rate = torch.full((), rate, device=parameters[0].device)
            for parameter in parameters:
                if parameter.grad.is_sparse:
                    self._change_rows(parameter, rate, group["eps"])
                    parameter.grad = None
            dense = [each for each in parameters if each.grad is not None]
            if dense and not is_on_cpu:
                self._change(dense, rate, group)
        if is_on_cpu:
            loss = super().step(closure)
        self.grad_scale = None
        return loss

    def _change(self, parameters: list[nn.Parameter], rate: Tensor, group: dict[str, Any]) -> None:
        states = [self.state[parameter] for parameter in parameters]
        torch._foreach_add_([state["step"] for state in states], 1)
        adagrad.update(
            [*parameters],
            [parameter.grad for parameter in parameters if parameter.grad is not None],
            [state["sum"] for state in states],
            rate=rate,
            scale=self.grad_scale,
            eps=group["eps"],
            weight_decay=group["weight_decay"],
        )

    def _change_rows(self, parameter: nn.Parameter, rate: float | Tensor, eps: float) -> None:
        assert parameter.grad is not None
        gradient = coalesced(parameter.grad)
        rows, values = gradient.indices()[0], gradient.values()
        if self.grad_scale is not None:
            values = values / self.grad_scale
        squares = self.state[parameter]["sum"]
        squares.index_add_(0, rows, values * values)
        change = values / squares.index_select(0, rows).sqrt_().add_(eps)
        if isinstance(rate, Tensor):
            parameter.index_add_(0, rows, change * -rate)
        else:
            parameter.index_add_(0, rows, change, alpha=-rate)

    def _move_steps(self) -> None:
        """Move the counts of updates to the parameters, where a recorded update increments them."""
        for parameter, state in self.state.items():
            state["step"] = state["step"].to(parameter.device)


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
        optimizer: Adagrad's next step on an accelerator scales them without another pass.
    """
    gradients = []
    for parameter in parameters:
        if parameter.grad is not None:
            if parameter.grad.is_sparse:
                parameter.grad = coalesced(parameter.grad)
            gradients.append(_values(parameter.grad))
    norm = nn.utils.get_total_norm(gradients)
    scale = (largest / (norm + _SMALLEST)).clamp(max=1.0)
    if isinstance(optimizer, RowAdagrad) and not uses_cpu_code(norm):
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
