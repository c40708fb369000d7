"""Highway LSTM layer over packed rows, with a custom backward pass; without a highway, an LSTM.

As in `lstm_layer.py`, computations without state cover all words at once: the products with x
before the loop over steps, the gradients of the weights after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from elmo_framework.kernels.backend import autocast_dtype, no_autocast
from elmo_framework.kernels.highway_layer import CompiledHighwayLayer
from elmo_framework.kernels.highway_step import FORGET_GATE, highway_step, highway_step_backward
from elmo_framework.kernels.product import (
    laid_out,
    linear,
    rounded_up,
    training_product,
    weight_gradient,
)

_Steps: TypeAlias = list[tuple[slice, slice]]
"""The words of each step and of the following one, which is empty for the last."""


class HighwayWeights(NamedTuple):
    """The weights of a layer, concatenated where they share a product.

    Attributes:
        of_words: "gates input": W, and W_t with a highway.
        of_hidden: "gates hidden": U, and U_t with a highway.
        bias: " gates": b, and b_t with a highway.
        carry: "hidden input": W_k; None without a highway.
        carry_bias: " hidden": its bias; None without one.
    """

    of_words: Tensor
    of_hidden: Tensor
    bias: Tensor
    carry: Tensor | None = None
    carry_bias: Tensor | None = None

    def detached(self) -> HighwayWeights:
        tensors: list[Any] = [None if each is None else each.detach() for each in self]
        return HighwayWeights(*tensors)


class _Saved(NamedTuple):
    """Values of each word that the backward pass needs.

    Attributes:
        gates: "words gates": the activations of i, j, f, o and, with a highway, t.
        carried: "words hidden": W_k x; None without a highway.
        memory: "words hidden": c before the word.
        hidden: "padded_words hidden": h before the word, after dropout. Unless the layer is
            compiled, zeros fill it up to a number of rows that is efficient (`rounded_up`).
    """

    gates: Tensor
    carried: Tensor | None
    memory: Tensor
    hidden: Tensor


def is_compiled(recurrent_weight: Tensor, words: Tensor) -> bool:
    """Return whether all steps of such a layer are one call to compiled code."""
    return CompiledHighwayLayer(recurrent_weight, (), is_backward=False).is_supported(
        words.new_empty(0)
    )


def read_highway(
    words: Float[Tensor, "words input"],
    weights: HighwayWeights,
    mask: Float[Tensor, "rows hidden"] | None,
    sizes: Sequence[int],
    *,
    is_backward: bool,
    forget_gate: int = FORGET_GATE,
) -> Float[Tensor, "words hidden"]:
    """Read packed rows (`Packing`); the states before the first word of a row are zero.

    Args:
        words: word vectors, step by step.
        weights: of the layer.
        mask: factor of h for the next step; None for 1.
        sizes: number of unfinished rows at each step.
        is_backward: whether rows are read from their ends.
        forget_gate: see `FORGET_GATE`; another index only for layers for which `is_compiled`.
    """
    if not sizes:
        return words.new_zeros(0, weights.of_hidden.shape[1])
    layer = CompiledHighwayLayer(weights.of_hidden, tuple(sizes), is_backward, forget_gate)
    if torch.is_grad_enabled():
        outputs: Tensor = _HighwayFunction.apply(  # type: ignore[no-untyped-call]
            words, *weights, mask, layer
        )
        return outputs
    # Detached, as products that are never differentiated do not depend on the number of rows.
    return _read(words.detach(), weights.detached(), mask, layer)[0]


def _read(
    words: Tensor, weights: HighwayWeights, mask: Tensor | None, layer: CompiledHighwayLayer
) -> tuple[Tensor, _Saved]:
    """Return h at each word, and the values for the backward pass."""
    # The recurrence has the precision of the weights, also in mixed precision.
    wide = weights.bias.dtype
    gates = linear(words, weights.of_words, weights.bias).to(wide)
    carried = None
    if weights.carry is not None:
        carried = linear(words, weights.carry, weights.carry_bias).to(wide)
    with no_autocast(gates):
        if layer.is_supported(gates, carried, mask):
            outputs, memory, hidden = layer.forward(gates, carried, mask)
        else:
            outputs, memory, hidden = _read_steps(gates, carried, mask, layer)
    return outputs, _Saved(gates, carried, memory, hidden)


def _read_steps(
    gates: Tensor, carried: Tensor | None, mask: Tensor | None, layer: CompiledHighwayLayer
) -> tuple[Tensor, Tensor, Tensor]:
    """Do the same as `layer.forward`, one step after the other."""
    assert layer.forget_gate == FORGET_GATE
    hidden_dim = layer.recurrent_weight.shape[1]
    memory = gates.new_zeros(len(gates), hidden_dim)
    hidden = gates.new_zeros(rounded_up(len(gates)), hidden_dim)
    outputs = torch.empty_like(memory)
    multiplied = laid_out(layer.recurrent_weight)
    for now, later in _steps(layer):
        # Reading forward, rows end at a step; backward, rows begin there, with zeros as state.
        continuing = slice(later.start, min(later.stop, later.start + now.stop - now.start))
        highway_step(
            multiplied(hidden[now]),
            gates[now],
            None if carried is None else carried[now],
            mask,
            memory[now],
            output=outputs[now],
            memory=memory[continuing],
            hidden=hidden[continuing],
        )
    return outputs, memory, hidden


def _steps(layer: CompiledHighwayLayer) -> _Steps:
    ends = accumulate(layer.sizes)
    words = [slice(end - size, end) for end, size in zip(ends, layer.sizes, strict=True)]
    steps = words[::-1] if layer.is_backward else words
    return list(zip(steps, [*steps[1:], slice(0, 0)], strict=True))


class _HighwayFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, words: Tensor, *arguments: Any) -> Tensor:
        *tensors, mask, layer = arguments
        weights = HighwayWeights(*tensors)
        outputs, saved = _read(words, weights, mask, layer)
        ctx.type = autocast_dtype(words) or words.dtype
        ctx.layer, ctx.has_carry_bias = layer, weights.carry_bias is not None
        ctx.is_compiled = layer.is_supported(saved.gates, saved.carried, mask)
        ctx.save_for_backward(
            words, weights.of_words, weights.of_hidden, weights.carry, mask, *saved
        )
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_outputs: Tensor) -> tuple[Tensor | None, ...]:
        words, input_weight, _, carry, mask, *values = ctx.saved_tensors
        saved, layer = _Saved(*values), ctx.layer
        is_needed = ctx.needs_input_grad[0]
        if ctx.is_compiled:
            of_sums, of_carried = layer.backward(of_outputs, *saved[:2], mask, saved.memory)
            # Before the first step h is zero.
            later = slice(-layer.sizes[-1]) if layer.is_backward else slice(layer.sizes[0], None)
            of_recurrent = weight_gradient(of_sums[later], saved.hidden[later])
        else:
            of_sums, of_carried = _read_steps_back(of_outputs, saved, mask, layer)
            of_recurrent = weight_gradient(of_sums, saved.hidden)
        of_words, of_input = _back(of_sums, words, input_weight, ctx.type, is_needed)
        of_bias, of_carry, of_carry_bias = of_sums.sum(dim=0), None, None
        if of_carried is not None:
            of_carried_words, of_carry = _back(of_carried, words, carry, ctx.type, is_needed)
            if of_words is not None and of_carried_words is not None:
                of_words += of_carried_words
            of_carry_bias = of_carried.sum(dim=0) if ctx.has_carry_bias else None
        of_weights = HighwayWeights(of_input, of_recurrent, of_bias, of_carry, of_carry_bias)
        return of_words, *of_weights, None, None


def _read_steps_back(
    of_outputs: Tensor, saved: _Saved, mask: Tensor | None, layer: CompiledHighwayLayer
) -> tuple[Tensor, Tensor | None]:
    """Do the same as `layer.backward`, with results that are padded like `hidden`."""
    gates, carried, memory, hidden = saved
    of_outputs = of_outputs.clone(memory_format=torch.contiguous_format)
    num_words, hidden_dim = of_outputs.shape
    of_sums = of_outputs.new_empty(len(hidden), gates.shape[1])
    of_carried = None if carried is None else torch.empty_like(hidden)
    for gradient in (of_sums, of_carried):
        if gradient is not None:
            gradient[num_words:] = 0
    multiplied = laid_out(layer.recurrent_weight.T)
    of_memory = of_outputs.new_zeros(layer.sizes[0], hidden_dim)
    of_hidden = of_outputs.new_zeros(0, hidden_dim)
    for now, _ in reversed(_steps(layer)):
        rows = now.stop - now.start
        highway_step_backward(
            gates[now],
            None if carried is None else carried[now],
            mask,
            memory[now],
            of_hidden[:rows],
            of_output=of_outputs[now],
            of_memory=of_memory[:rows],
            of_sums=of_sums[now],
            of_carried=None if of_carried is None else of_carried[now],
        )
        of_hidden = multiplied(of_sums[now])
    return of_sums, of_carried


def _back(
    gradient: Tensor, words: Tensor, weight: Tensor, type_: torch.dtype, is_needed: bool
) -> tuple[Tensor | None, Tensor]:
    """Return the gradients of the words, if needed, and of the weight of a product.

    Args:
        gradient: of the products.
        words: what was multiplied.
        weight: of the product.
        type_: its precision.
        is_needed: whether the first gradient is needed.
    """
    narrow, rows, of_words = gradient.to(type_), words.to(type_), None
    if is_needed:
        of_words = training_product(narrow, weight.to(type_).T)[: len(words)].to(words.dtype)
    if num_padding := len(gradient) - len(words):
        rows = functional.pad(rows, (0, 0, 0, num_padding))
    return of_words, weight_gradient(narrow, rows).to(weight.dtype)
