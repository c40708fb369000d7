"""The pointwise part of a highway LSTM's step: compiled from `highway_step.c`, or by PyTorch."""

from __future__ import annotations

from ctypes import c_long, c_void_p
from pathlib import Path

import torch
from torch import Tensor

from elmo_framework.kernels.compiler import is_served, library

_library = library(
    Path(__file__).with_suffix(".c"),
    fast_math=True,
    functions={
        "highway_step": [c_long, c_long, c_long, *[c_void_p] * 8],
        "highway_step_backward": [c_long, c_long, c_long, *[c_void_p] * 9],
    },
)


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
    """Make the pointwise part of a step, without gradients.

    Args:
        sums: "rows gates": the recurrent part of the sums of i, j, f, o and, with a highway, t;
            used up.
        gates: "rows gates": the rest of the sums; holds the activations afterwards.
        carried: "rows hidden": W_k x; None without a highway.
        mask: "all_rows hidden": what h is multiplied by on its way to the next step; None for 1.
        before: "rows hidden": the memory c.
        output: "rows hidden": is filled with h.
        memory: "kept hidden": is filled with c after the step, for the rows that go on: the first.
        hidden: "kept hidden": is filled with mask * h.
    """
    given = [sums, gates, carried, mask, before, output, memory, hidden]
    functions = _library() if _are_served(given) else None
    if functions is None:
        _plain_step(sums, gates, carried, mask, before, output, memory, hidden)
        return
    functions.highway_step(len(output), len(hidden), output.shape[1], *map(_pointer, given))


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
    """Pass gradients back through a step, in place.

    Args:
        gates: the activations that the step left.
        carried: as in the step.
        mask: as in the step.
        before: the memory before the step.
        of_hidden: "kept hidden": the gradient of `hidden`.
        of_output: that of `output`, used up.
        of_memory: that of the memory after the step, 0 for rows that end; then that of `before`.
        of_sums: is filled with the gradient of the sums.
        of_carried: is filled with that of `carried`.
    """
    given = [gates, carried, mask, before, of_hidden, of_output, of_memory, of_sums, of_carried]
    functions = _library() if _are_served(given) else None
    if functions is None:
        _plain_step_backward(
            gates, carried, mask, before, of_hidden, of_output, of_memory, of_sums, of_carried
        )
        return
    rows, size = of_output.shape
    functions.highway_step_backward(rows, len(of_hidden), size, *map(_pointer, given))


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
    i, j, f, o, t = i.sigmoid(), j.tanh(), f.sigmoid(), o.sigmoid(), [each.sigmoid() for each in t]
    after = f * before + i * j
    torch.cat([i, j, f, o, *t], dim=1, out=gates)
    h = o * after.tanh()
    output.copy_(h if carried is None else torch.lerp(carried, h, t[0]))
    kept = len(hidden)
    memory.copy_(after[:kept])
    hidden.copy_(output[:kept] if mask is None else output[:kept] * mask[:kept])


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
    kept = len(of_hidden)
    of_output[:kept] += of_hidden if mask is None else of_hidden * mask[:kept]
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


def _are_served(given: list[Tensor | None]) -> bool:
    return is_served(*[tensor for tensor in given if tensor is not None])


def _pointer(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()
