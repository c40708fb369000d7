"""The scan c_t = a_t c_(t-1) + b_t of elementwise products, with gates and with gradients."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from elmo_framework.kernels.backend import uses_cpu_code
from elmo_framework.kernels.gated_scan import gated_scan, gated_scan_backward, is_supported


def read_gated(
    gates: Float[Tensor, "tokens batch gates"],
    is_word: Bool[Tensor, "tokens batch"],
    start: Float[Tensor, "batch dim"],
) -> tuple[Float[Tensor, "tokens batch dim"], Float[Tensor, "batch dim"]]:
    """Read rows with a forget gate and an output gate.

    f = sigmoid(g_f); c' = f c + (1 - f) g_c; y = silu(g_o) c'.

    Args:
        gates: g_f, g_c and g_o, each as wide as c.
        is_word: where it is false, c stays as it is.
        start: c before the first step.

    Returns:
        y at each step, and c after the last one.
    """
    gates, start = gates.contiguous(), start.contiguous()
    if is_supported(gates, start):
        is_word = is_word.contiguous()
        if not (torch.is_grad_enabled() and (gates.requires_grad or start.requires_grad)):
            return gated_scan(gates, is_word, start, keep=False)
        results: tuple[Tensor, Tensor] = _GatedScan.apply(  # type: ignore[no-untyped-call]
            gates, is_word, start
        )
        return results
    forget, candidates, out = gates.chunk(3, dim=2)
    forget = torch.sigmoid(forget).masked_fill(~is_word[:, :, None], 1.0)
    memory = scan(forget, (1 - forget) * candidates, start)
    return functional.silu(out) * memory, memory[-1] if len(memory) else start


class _GatedScan(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, gates: Tensor, is_word: Tensor, start: Tensor) -> tuple[Tensor, Tensor]:
        outputs, states = gated_scan(gates, is_word, start, keep=True)
        ctx.save_for_backward(gates, is_word, start, states)
        return outputs, states[-1].clone() if len(states) else start.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_outputs: Tensor, of_end: Tensor) -> tuple[Tensor, None, Tensor]:
        gates, is_word, start, states = ctx.saved_tensors
        of_start = of_end.clone(memory_format=torch.contiguous_format)
        of_gates = gated_scan_backward(
            gates, is_word, start, states, of_outputs.contiguous(), of_start
        )
        return of_gates, None, of_start


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
