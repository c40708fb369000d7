"""A gated linear recurrence between its two products: compiled from `gated_scan.c`."""

from __future__ import annotations

from ctypes import c_int, c_long, c_void_p
from pathlib import Path

from torch import Tensor

from elmo_framework.kernels.backend import is_traced
from elmo_framework.kernels.compiler import library, pointers

_library = library(
    Path(__file__).with_suffix(".c"),
    fast_math=True,
    functions={
        "gated_scan": [*[c_long] * 3, c_int, *[c_void_p] * 5],
        "gated_scan_backward": [*[c_long] * 3, *[c_void_p] * 7],
    },
)


def is_supported(*tensors: Tensor) -> bool:
    """Return whether the compiled functions support these tensors."""
    return not is_traced() and _library(*tensors) is not None


def gated_scan(
    gates: Tensor, is_word: Tensor, start: Tensor, *, keep: bool
) -> tuple[Tensor, Tensor]:
    """Read rows: f = sigmoid(g_f); c' = f c + (1 - f) g_c; y = silu(g_o) c'.

    Args:
        gates: "steps rows 3*size": g_f, g_c and g_o.
        is_word: "steps rows": where it is false, c stays as it is.
        start: "rows size": c before the first step.
        keep: whether to return c after each step, for the backward pass.

    Returns:
        y, "steps rows size", and c: after each step if `keep`, otherwise after the last.

    Raises:
        ValueError: the shapes do not fit together.
    """
    if gates.shape != (*is_word.shape, 3 * start.shape[1]) or len(start) != is_word.shape[1]:
        shapes = ", ".join(str(tuple(each.shape)) for each in (gates, is_word, start))
        raise ValueError(f"gates, words and first states do not fit together: {shapes}")
    functions = _library(gates, start)
    assert functions is not None
    steps, rows, size = *is_word.shape, start.shape[1]
    outputs = gates.new_empty(steps, rows, size)
    # Without a step, the last state is the first.
    states = gates.new_empty(steps, rows, size) if keep else start.clone()
    tensors = gates, is_word, start, states, outputs
    functions.gated_scan(steps, rows, size, keep, *pointers(*tensors))
    return outputs, states


def gated_scan_backward(
    gates: Tensor,
    is_word: Tensor,
    start: Tensor,
    states: Tensor,
    of_outputs: Tensor,
    of_state: Tensor,
) -> Tensor:
    """Return the gradient of the gates.

    Args:
        gates: as in `gated_scan`.
        is_word: as there.
        start: as there.
        states: c after each step.
        of_outputs: the gradient of y.
        of_state: the gradient of the last c; replaced by that of `start`.
    """
    functions = _library(gates, start, states, of_outputs, of_state)
    assert functions is not None
    of_gates = gates.new_empty(gates.shape)
    tensors = gates, is_word, start, states, of_outputs, of_state, of_gates
    functions.gated_scan_backward(*is_word.shape, start.shape[1], *pointers(*tensors))
    return of_gates
