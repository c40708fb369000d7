"""The scan c_t = a_t c_(t-1) + b_t of elementwise products, with gradients."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from elmo_framework.kernels.backend import uses_cpu_code


def scan(
    decay: Float[Tensor, "tokens batch dim"],
    inputs: Float[Tensor, "tokens batch dim"],
    start: Float[Tensor, "batch dim"],
) -> Float[Tensor, "tokens batch dim"]:
    """Return the states c_t = decay_t c_(t-1) + inputs_t, from c_(-1) = start."""
    states: Tensor = _Scan.apply(decay, inputs, start)  # type: ignore[no-untyped-call]
    return states


class _Scan(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, decay: Tensor, inputs: Tensor, start: Tensor) -> Tensor:
        states = scanned(decay, inputs, start)
        ctx.save_for_backward(decay, states, start)
        return states

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_states: Tensor) -> tuple[Tensor, ...]:
        # g_t = of_states_t + decay_(t+1) g_(t+1): the same scan, from the last step to the first.
        decay, states, start = ctx.saved_tensors
        if not len(decay):
            return torch.zeros_like(decay), torch.zeros_like(decay), torch.zeros_like(start)
        later = torch.cat([decay[1:], torch.zeros_like(decay[:1])])
        of_inputs = scanned(later.flip(0), of_states.flip(0), torch.zeros_like(start)).flip(0)
        before = torch.cat([start[None], states[:-1]])
        return of_inputs * before, of_inputs, of_inputs[0] * decay[0]


def scanned(decay: Tensor, inputs: Tensor, start: Tensor) -> Tensor:
    """Return the states of `scan`, without gradients."""
    if not len(decay):
        return inputs.clone()
    # A CPU is limited by memory, which a loop reads once; a GPU by the number of its calls.
    return _loop(decay, inputs, start) if uses_cpu_code(decay) else _doubled(decay, inputs, start)


def _loop(decay: Tensor, inputs: Tensor, state: Tensor) -> Tensor:
    states = torch.empty_like(inputs)
    for factor, added, out in zip(decay, inputs, states, strict=True):
        state = torch.addcmul(added, factor, state, out=out)
    return states


def _doubled(decay: Tensor, inputs: Tensor, start: Tensor) -> Tensor:
    """Combine runs of 1, 2, 4, ... steps (Hillis and Steele 1986): log2(tokens) calls."""
    factors, states, span = decay, inputs.clone(), 1
    states[0].addcmul_(decay[0], start)
    while span < len(states):
        tail = states[span:] + factors[span:] * states[:-span]
        states = torch.cat([states[:span], tail])
        factors = torch.cat([factors[:span], factors[span:] * factors[:-span]])
        span *= 2
    return states
