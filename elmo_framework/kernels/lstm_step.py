"""Pointwise part of an LSTM's step: compiled from `lstm_step.c`, by Triton, or in PyTorch."""

from __future__ import annotations

from ctypes import c_float, c_int, c_long, c_void_p, cast
from pathlib import Path

import torch
from torch import Tensor

from elmo_framework.kernels.backend import uses_cpu_code
from elmo_framework.kernels.compiler import library, pointers
from elmo_framework.kernels.operators import operator

_library = library(
    Path(__file__).with_suffix(".c"),
    fast_math=True,
    functions={
        "lstm_step": [c_long, c_long, c_float, c_int, *[c_void_p] * 5],
        "lstm_step_backward": [c_long, c_long, c_float, *[c_void_p] * 6],
    },
)
NO_LIMIT = torch.finfo(torch.float32).max
"""A limit for the compiled functions that limits nothing."""


def step_address() -> int | None:
    """Return the address of the compiled step, for other compiled code; None without a compiler."""
    functions = _library()
    return None if functions is None else cast(functions.lstm_step, c_void_p).value


def backward_address() -> int | None:
    """Return the address of the compiled backward pass of a step, as `step_address` does."""
    functions = _library()
    return None if functions is None else cast(functions.lstm_step_backward, c_void_p).value


def step(
    gates: Tensor, inputs: Tensor, before: Tensor, *, cell_clip: float | None, keep: bool
) -> tuple[Tensor, Tensor]:
    """Compute the pointwise part of a step, without gradients.

    Args:
        gates: "rows 4*cell": the recurrent part of the sums; replaced by the activations if
            `keep`.
        inputs: "rows 4*cell": the rest of the sums.
        before: "rows cell": the cell state c.
        cell_clip: maximum absolute value of c.
        keep: whether the activations are needed for the backward pass.

    Returns:
        The cell state after the step, and sigmoid(o) tanh(c) in the type of the gates.
    """
    if not uses_cpu_code(before):
        after, output = _step(gates, inputs, before, cell_clip, keep)
        return after, output
    functions = _library(gates, inputs, before)
    if functions is not None:
        after, output = torch.empty_like(before), torch.empty_like(before)
        limit = NO_LIMIT if cell_clip is None else cell_clip
        tensors = pointers(gates, inputs, before, after, output)
        functions.lstm_step(*before.shape, limit, keep, *tensors)
        return after, output
    return _plain_step(gates, inputs, before, cell_clip, keep)


def step_backward(
    gates: Tensor,
    before: Tensor,
    after: Tensor,
    of_output: Tensor,
    of_memory: Tensor,
    *,
    cell_clip: float | None,
    of_sums: Tensor,
) -> None:
    """Backpropagate through a step, in place.

    Args:
        gates: the activations saved by `step`.
        before: the cell state before the step.
        after: the cell state after the step.
        of_output: the gradient of sigmoid(o) tanh(c).
        of_memory: the gradient of `after`; replaced by that of `before`.
        cell_clip: as in the step; where it clipped, the gradient is zero.
        of_sums: "rows 4*cell": receives the gradient of the sums.
    """
    if not uses_cpu_code(before):
        _step_backward(gates, before, after, of_output, of_memory, cell_clip, of_sums)
        return
    tensors = gates, before, after, of_output, of_memory, of_sums
    functions = _library(*tensors)
    if functions is not None:
        limit = NO_LIMIT if cell_clip is None else cell_clip
        functions.lstm_step_backward(*before.shape, limit, *pointers(*tensors))
        return
    _plain_step_backward(gates, before, after, of_output, of_memory, cell_clip, of_sums)


def clipped_gradient(
    of_output: Tensor, of_next: Tensor, hidden: Tensor, limit: float | None, out: Tensor
) -> None:
    """Add two gradients of a projected output h, and set them to zero where h was clipped.

    Args:
        of_output: "rows hidden": the gradient of h as an output.
        of_next: "rows hidden": the gradient of h as the state of the next step.
        hidden: "rows hidden": h.
        limit: maximum absolute value of h; None for no limit.
        out: "rows hidden": receives the result.
    """
    compute = _plain_clipped_gradient if uses_cpu_code(hidden) else _clipped_gradient
    compute(of_output, of_next, hidden, limit, out)


def _plain_step(
    gates: Tensor, inputs: Tensor, before: Tensor, cell_clip: float | None, keep: bool
) -> tuple[Tensor, Tensor]:
    sums = gates.to(before.dtype) + inputs
    i, j, f, o = sums.chunk(4, dim=1)
    i, j, f, o = i.sigmoid(), j.tanh(), f.sigmoid(), o.sigmoid()
    after = f * before + i * j
    if cell_clip is not None:
        after = after.clamp(-cell_clip, cell_clip)
    if keep:
        gates.copy_(torch.cat([i, j, f, o], dim=1))
    return after, (o * after.tanh()).to(gates.dtype)


def _plain_step_backward(
    gates: Tensor,
    before: Tensor,
    after: Tensor,
    of_output: Tensor,
    of_memory: Tensor,
    cell_clip: float | None,
    of_sums: Tensor,
) -> None:
    i, j, f, o = gates.to(before.dtype).chunk(4, dim=1)
    outer = after.tanh()
    inner = of_memory + of_output * o * (1 - outer * outer)
    if cell_clip is not None:
        inner = inner.masked_fill(after.abs() >= cell_clip, 0)
    parts = [
        inner * j * i * (1 - i),
        inner * i * (1 - j * j),
        inner * before * f * (1 - f),
        of_output * outer * o * (1 - o),
    ]
    of_memory.copy_(inner * f)
    of_sums.copy_(torch.cat(parts, dim=1))


def _plain_clipped_gradient(
    of_output: Tensor, of_next: Tensor, hidden: Tensor, limit: float | None, out: Tensor
) -> None:
    torch.add(of_output, of_next, out=out)
    if limit is not None:
        out.masked_fill_(hidden.abs() >= limit, 0)


_step = operator(
    "lstm_step(Tensor(a!) gates, Tensor inputs, Tensor before, float? cell_clip, bool keep)"
    " -> (Tensor, Tensor)",
    _plain_step,
)
_step_backward = operator(
    "lstm_step_backward(Tensor gates, Tensor before, Tensor after, Tensor of_output,"
    " Tensor(a!) of_memory, float? cell_clip, Tensor(b!) of_sums) -> ()",
    _plain_step_backward,
)
_clipped_gradient = operator(
    "clipped_gradient(Tensor of_output, Tensor of_next, Tensor hidden, float? limit,"
    " Tensor(a!) out) -> ()",
    _plain_clipped_gradient,
)
