"""Triton kernels of pointwise operators: an LSTM's step, with and without a highway, and Adagrad.

Sums and activations are computed in float32, whatever the type of the tensors. All tensors are
contiguous.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

_BLOCK = 1024
"""Numbers per program: a cell state of 4,096 and 128 rows are 512 programs, four for each of an
H100's 132 multiprocessors."""

_NEAR_ZERO = tl.constexpr(0.1)


@triton.jit
def _tanh(x):  # type: ignore[no-untyped-def]
    # 2 sigmoid(2 x) - 1 cancels near zero, where the series is exact to float32's last bits.
    square = x * x
    series = x * (1 + square * (-1 / 3 + square * (2 / 15 - square * (17 / 315))))
    return tl.where(tl.abs(x) < _NEAR_ZERO, series, 2 * tl.sigmoid(2 * x) - 1)


@triton.jit
def _step(  # type: ignore[no-untyped-def]
    gates,
    inputs,
    before,
    after,
    output,
    limit,
    size,
    count,
    keep: tl.constexpr,
    block: tl.constexpr,
):
    at = tl.program_id(0) * block + tl.arange(0, block)
    inside = at < count
    first = at // size * 4 * size + at % size
    i = tl.load(gates + first, inside).to(tl.float32)
    j = tl.load(gates + first + size, inside).to(tl.float32)
    f = tl.load(gates + first + 2 * size, inside).to(tl.float32)
    o = tl.load(gates + first + 3 * size, inside).to(tl.float32)
    i = tl.sigmoid(i + tl.load(inputs + first, inside).to(tl.float32))
    j = _tanh(j + tl.load(inputs + first + size, inside).to(tl.float32))
    f = tl.sigmoid(f + tl.load(inputs + first + 2 * size, inside).to(tl.float32))
    o = tl.sigmoid(o + tl.load(inputs + first + 3 * size, inside).to(tl.float32))
    memory = f * tl.load(before + at, inside) + i * j
    # Not min and max: these drop NaN.
    memory = tl.where(memory > limit, limit, tl.where(memory < -limit, -limit, memory))
    tl.store(after + at, memory, inside)
    tl.store(output + at, o * _tanh(memory), inside)
    if keep:
        tl.store(gates + first, i, inside)
        tl.store(gates + first + size, j, inside)
        tl.store(gates + first + 2 * size, f, inside)
        tl.store(gates + first + 3 * size, o, inside)


@triton.jit
def _step_backward(  # type: ignore[no-untyped-def]
    gates, before, after, of_output, of_memory, of_sums, limit, size, count, block: tl.constexpr
):
    at = tl.program_id(0) * block + tl.arange(0, block)
    inside = at < count
    first = at // size * 4 * size + at % size
    i = tl.load(gates + first, inside).to(tl.float32)
    j = tl.load(gates + first + size, inside).to(tl.float32)
    f = tl.load(gates + first + 2 * size, inside).to(tl.float32)
    o = tl.load(gates + first + 3 * size, inside).to(tl.float32)
    memory = tl.load(after + at, inside)
    outer, gradient = _tanh(memory), tl.load(of_output + at, inside).to(tl.float32)
    inner = tl.load(of_memory + at, inside) + gradient * o * (1 - outer * outer)
    inner = tl.where(tl.abs(memory) >= limit, 0.0, inner)
    tl.store(of_sums + first, inner * j * i * (1 - i), inside)
    tl.store(of_sums + first + size, inner * i * (1 - j * j), inside)
    tl.store(of_sums + first + 2 * size, inner * tl.load(before + at, inside) * f * (1 - f), inside)
    tl.store(of_sums + first + 3 * size, gradient * outer * o * (1 - o), inside)
    tl.store(of_memory + at, inner * f, inside)


@triton.jit
def _clipped_gradient(  # type: ignore[no-untyped-def]
    of_output, of_next, hidden, out, limit, count, block: tl.constexpr
):
    at = tl.program_id(0) * block + tl.arange(0, block)
    inside = at < count
    total = tl.load(of_output + at, inside).to(tl.float32)
    total += tl.load(of_next + at, inside).to(tl.float32)
    is_clipped = tl.abs(tl.load(hidden + at, inside).to(tl.float32)) >= limit
    tl.store(out + at, tl.where(is_clipped, 0.0, total), inside)


@triton.jit
def _gate(sums, gates, at, inside):  # type: ignore[no-untyped-def]
    return tl.load(sums + at, inside) + tl.load(gates + at, inside)


@triton.jit
def _highway_step(  # type: ignore[no-untyped-def]
    sums,
    gates,
    carried,
    mask,
    before,
    output,
    memory,
    hidden,
    size,
    count,
    next_count,
    has_carry: tl.constexpr,
    has_mask: tl.constexpr,
    block: tl.constexpr,
):
    at = tl.program_id(0) * block + tl.arange(0, block)
    inside, continues = at < count, at < next_count
    first = at // size * (5 if has_carry else 4) * size + at % size
    i = tl.sigmoid(_gate(sums, gates, first, inside))
    j = _tanh(_gate(sums, gates, first + size, inside))
    f = tl.sigmoid(_gate(sums, gates, first + 2 * size, inside))
    o = tl.sigmoid(_gate(sums, gates, first + 3 * size, inside))
    after = f * tl.load(before + at, inside) + i * j
    h = o * _tanh(after)
    tl.store(gates + first, i, inside)
    tl.store(gates + first + size, j, inside)
    tl.store(gates + first + 2 * size, f, inside)
    tl.store(gates + first + 3 * size, o, inside)
    if has_carry:
        t = tl.sigmoid(_gate(sums, gates, first + 4 * size, inside))
        tl.store(gates + first + 4 * size, t, inside)
        h = t * h + (1 - t) * tl.load(carried + at, inside)
    tl.store(output + at, h, inside)
    tl.store(memory + at, after, continues)
    if has_mask:
        h *= tl.load(mask + at, continues)
    tl.store(hidden + at, h, continues)


@triton.jit
def _highway_step_backward(  # type: ignore[no-untyped-def]
    gates,
    carried,
    mask,
    before,
    of_hidden,
    of_output,
    of_memory,
    of_sums,
    of_carried,
    size,
    count,
    next_count,
    has_carry: tl.constexpr,
    has_mask: tl.constexpr,
    block: tl.constexpr,
):
    at = tl.program_id(0) * block + tl.arange(0, block)
    inside, continues = at < count, at < next_count
    first = at // size * (5 if has_carry else 4) * size + at % size
    of_next = tl.load(of_hidden + at, continues, other=0.0)
    if has_mask:
        of_next *= tl.load(mask + at, continues, other=0.0)
    of_cell = tl.load(of_output + at, inside) + of_next
    tl.store(of_output + at, of_cell, inside)
    i = tl.load(gates + first, inside)
    j = tl.load(gates + first + size, inside)
    f = tl.load(gates + first + 2 * size, inside)
    o = tl.load(gates + first + 3 * size, inside)
    state = tl.load(before + at, inside)
    outer = _tanh(f * state + i * j)
    if has_carry:
        t = tl.load(gates + first + 4 * size, inside)
        of_all, of_cell = of_cell, of_cell * t
        of_transform = of_cell * (1 - t) * (o * outer - tl.load(carried + at, inside))
        tl.store(of_carried + at, of_all - of_cell, inside)
        tl.store(of_sums + first + 4 * size, of_transform, inside)
    inner = tl.load(of_memory + at, inside) + of_cell * o * (1 - outer * outer)
    tl.store(of_sums + first, inner * j * i * (1 - i), inside)
    tl.store(of_sums + first + size, inner * i * (1 - j * j), inside)
    tl.store(of_sums + first + 2 * size, inner * state * f * (1 - f), inside)
    tl.store(of_sums + first + 3 * size, of_cell * outer * o * (1 - o), inside)
    tl.store(of_memory + at, inner * f, inside)


@triton.jit
def _adagrad(  # type: ignore[no-untyped-def]
    parameter,
    gradient,
    squares,
    rate,
    scale,
    eps,
    weight_decay,
    count,
    has_scale: tl.constexpr,
    block: tl.constexpr,
):
    at = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    inside = at < count
    value = tl.load(parameter + at, inside).to(tl.float32)
    change = tl.load(gradient + at, inside).to(tl.float32)
    if has_scale:
        change = change / tl.load(scale)
    change += weight_decay * value
    total = tl.load(squares + at, inside).to(tl.float32) + change * change
    tl.store(squares + at, total, inside)
    tl.store(parameter + at, value - tl.load(rate) * change / (tl.sqrt(total) + eps), inside)


def probe() -> None:
    """Compile and launch a kernel, or raise what prevents that."""
    number = torch.zeros(1, device="cuda")
    clipped_gradient(number, number, number, None, torch.empty_like(number))


def lstm_step(
    gates: Tensor, inputs: Tensor, before: Tensor, cell_clip: float | None, keep: bool
) -> tuple[Tensor, Tensor]:
    """Compute `lstm_step.step`."""
    after, output = torch.empty_like(before), torch.empty_like(before, dtype=gates.dtype)
    sizes = before.shape[1], before.numel()
    tensors = gates, inputs, before, after, output
    _launch(_step, before, *tensors, _limit(cell_clip, after.dtype), *sizes, keep=keep)
    return after, output


def lstm_step_backward(
    gates: Tensor,
    before: Tensor,
    after: Tensor,
    of_output: Tensor,
    of_memory: Tensor,
    cell_clip: float | None,
    of_sums: Tensor,
) -> None:
    """Compute `lstm_step.step_backward`."""
    sizes = before.shape[1], before.numel()
    tensors = gates, before, after, of_output, of_memory, of_sums
    _launch(_step_backward, before, *tensors, _limit(cell_clip, after.dtype), *sizes)


def clipped_gradient(
    of_output: Tensor, of_next: Tensor, hidden: Tensor, limit: float | None, out: Tensor
) -> None:
    """Compute `lstm_step.clipped_gradient`."""
    tensors = of_output, of_next, hidden, out
    _launch(_clipped_gradient, out, *tensors, _limit(limit, hidden.dtype), out.numel())


def highway_step(
    sums: Tensor,
    gates: Tensor,
    carried: Tensor | None,
    mask: Tensor | None,
    before: Tensor,
    output: Tensor,
    memory: Tensor,
    hidden: Tensor,
) -> None:
    """Compute `highway_step.highway_step`."""
    tensors = sums, gates, carried, mask, before, output, memory, hidden
    sizes = before.shape[1], before.numel(), hidden.numel()
    parts = {"has_carry": carried is not None, "has_mask": mask is not None}
    _launch(_highway_step, before, *tensors, *sizes, **parts)


def highway_step_backward(
    gates: Tensor,
    carried: Tensor | None,
    mask: Tensor | None,
    before: Tensor,
    of_hidden: Tensor,
    of_output: Tensor,
    of_memory: Tensor,
    of_sums: Tensor,
    of_carried: Tensor | None,
) -> None:
    """Compute `highway_step.highway_step_backward`."""
    tensors = gates, carried, mask, before, of_hidden, of_output, of_memory, of_sums, of_carried
    sizes = before.shape[1], before.numel(), of_hidden.numel()
    parts = {"has_carry": carried is not None, "has_mask": mask is not None}
    _launch(_highway_step_backward, before, *tensors, *sizes, **parts)


def adagrad(
    parameters: list[Tensor],
    gradients: list[Tensor],
    squares: list[Tensor],
    rate: Tensor,
    scale: Tensor | None,
    eps: float,
    weight_decay: float,
) -> None:
    """Compute `adagrad.update`."""
    for parameter, gradient, of_parameter in zip(parameters, gradients, squares, strict=True):
        tensors = parameter, gradient.contiguous(), of_parameter, rate, scale
        numbers = eps, weight_decay, parameter.numel()
        _launch(_adagrad, parameter, *tensors, *numbers, has_scale=scale is not None)


def _launch(kernel: Any, like: Tensor, *arguments: Any, **constants: Any) -> None:
    """Launch a kernel over the numbers of a tensor, on its device."""
    if like.numel():
        grid = (triton.cdiv(like.numel(), _BLOCK),)
        with torch.cuda.device_of(like):  # type: ignore[no-untyped-call]
            kernel[grid](*arguments, block=_BLOCK, **constants)


@cache
def _limit(clip: float | None, dtype: torch.dtype) -> float:
    """Return a limit as a number of a type, as a tensor is clipped; None is above all numbers."""
    return float("inf") if clip is None else torch.tensor(clip, dtype=dtype).item()
