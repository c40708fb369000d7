"""Pointwise part of a highway LSTM's step: from `highway_step.c`, by Triton, or in PyTorch."""

from __future__ import annotations

from ctypes import c_long, c_void_p, cast
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
        "highway_step": [*[c_long] * 4, *[c_void_p] * 8],
        "highway_step_backward": [*[c_long] * 4, *[c_void_p] * 9],
    },
)
FORGET_GATE = 2
"""Index of f in the order i, j, f, o; in PyTorch's it is 1, before j."""


def step_address() -> int | None:
    """Return the address of the compiled step, for other compiled code; None without a compiler."""
    functions = _library()
    return None if functions is None else cast(functions.highway_step, c_void_p).value


def backward_address() -> int | None:
    """Return the address of the compiled backward pass of a step, as `step_address` does."""
    functions = _library()
    return None if functions is None else cast(functions.highway_step_backward, c_void_p).value


def highway_step(
    sums: Tensor,
    gates: Tensor,
    carried: Tensor | None,
    mask: Tensor | None,
    before: Tensor,
    *,
    output: Tensor,
    memory: Tensor,
    hidden: Tensor,
) -> None:
    """Compute the pointwise part of a step, without gradients.

    Args:
        sums: "rows gates": the recurrent part of the sums of i, j, f, o and, with a highway, t;
            may be overwritten.
        gates: "rows gates": the rest of the sums; replaced by the activations.
        carried: "rows hidden": W_k x; None without a highway.
        mask: "all_rows hidden": factor of h for the next step; None for 1.
        before: "rows hidden": the cell state c.
        output: "rows hidden": receives h.
        memory: "next_rows hidden": receives c after the step, for the first rows, which continue.
        hidden: "next_rows hidden": receives mask * h.
    """
    tensors = sums, gates, carried, mask, before, output, memory, hidden
    if not uses_cpu_code(before):
        _step(*tensors)
        return
    functions = _library(*tensors)
    if functions is not None:
        rows, size = output.shape
        functions.highway_step(rows, len(hidden), size, FORGET_GATE, *pointers(*tensors))
        return
    _plain_step(*tensors)


def highway_step_backward(
    gates: Tensor,
    carried: Tensor | None,
    mask: Tensor | None,
    before: Tensor,
    of_hidden: Tensor,
    *,
    of_output: Tensor,
    of_memory: Tensor,
    of_sums: Tensor,
    of_carried: Tensor | None,
) -> None:
    """Backpropagate through a step, in place.

    Args:
        gates: the activations of the step.
        carried: as in the step.
        mask: as in the step.
        before: the cell state before the step.
        of_hidden: "next_rows hidden": the gradient of `hidden`.
        of_output: the gradient of `output`; overwritten.
        of_memory: the gradient of the cell state after the step, 0 for rows that end; replaced by
            that of `before`.
        of_sums: receives the gradient of the sums.
        of_carried: receives the gradient of `carried`.
    """
    tensors = gates, carried, mask, before, of_hidden, of_output, of_memory, of_sums, of_carried
    if not uses_cpu_code(before):
        _step_backward(*tensors)
        return
    functions = _library(*tensors)
    if functions is not None:
        rows, size = of_output.shape
        functions.highway_step_backward(
            rows, len(of_hidden), size, FORGET_GATE, *pointers(*tensors)
        )
        return
    _plain_step_backward(*tensors)


def _plain_step(
    sums: Tensor,
    gates: Tensor,
    carried: Tensor | None,
    mask: Tensor | None,
    before: Tensor,
    output: Tensor,
    memory: Tensor,
    hidden: Tensor,
) -> None:
    i, j, f, o, *t = (sums + gates).chunk(gates.shape[1] // before.shape[1], dim=1)
    i, j, f, o, t = i.sigmoid(), j.tanh(), f.sigmoid(), o.sigmoid(), [gate.sigmoid() for gate in t]
    after = f * before + i * j
    torch.cat([i, j, f, o, *t], dim=1, out=gates)
    h = o * after.tanh()
    output.copy_(h if carried is None else torch.lerp(carried, h, t[0]))
    num_next = len(hidden)
    memory.copy_(after[:num_next])
    hidden.copy_(output[:num_next] if mask is None else output[:num_next] * mask[:num_next])


def _plain_step_backward(
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
    num_next = len(of_hidden)
    of_output[:num_next] += of_hidden if mask is None else of_hidden * mask[:num_next]
    i, j, f, o, *t = gates.chunk(gates.shape[1] // before.shape[1], dim=1)
    outer = (f * before + i * j).tanh()
    of_cell, of_transform = of_output, []
    if carried is not None and of_carried is not None:
        of_cell = of_output * t[0]
        torch.sub(of_output, of_cell, out=of_carried)
        of_transform = [of_cell * (1 - t[0]) * (o * outer - carried)]
    inner = of_memory + of_cell * o * (1 - outer * outer)
    parts = [
        inner * j * i * (1 - i),
        inner * i * (1 - j * j),
        inner * before * f * (1 - f),
        of_cell * outer * o * (1 - o),
    ]
    of_memory.copy_(inner * f)
    torch.cat([*parts, *of_transform], dim=1, out=of_sums)


_step = operator(
    "highway_step(Tensor sums, Tensor(a!) gates, Tensor? carried, Tensor? mask, Tensor before,"
    " Tensor(b!) output, Tensor(c!) memory, Tensor(d!) hidden) -> ()",
    _plain_step,
)
_step_backward = operator(
    "highway_step_backward(Tensor gates, Tensor? carried, Tensor? mask, Tensor before,"
    " Tensor of_hidden, Tensor(a!) of_output, Tensor(b!) of_memory, Tensor(c!) of_sums,"
    " Tensor(d!)? of_carried) -> ()",
    _plain_step_backward,
)
