"""LSTM layer over packed rows: a loop over steps with a custom backward pass.

Computations without state cover many steps at once: the input half of the gates before the loop,
and the gradients of the weights after it, each as one product.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from elmo_framework.kernels.lstm_step import clipped_gradient, step, step_backward
from elmo_framework.kernels.product import (
    Product,
    TrainingPrecision,
    prepared_backward,
    prepared_for_update,
    weight_gradient,
)
from elmo_framework.kernels.training_layer import TrainingLayer

# Bounds the memory of the gates, whatever the length of the rows.
_WORDS_AT_ONCE = 512


class LstmState(NamedTuple):
    """State of an LSTM between two steps.

    Attributes:
        hidden: "batch hidden", h.
        memory: "batch cell", c.
    """

    hidden: Tensor
    memory: Tensor


def read_layer(
    words: Tensor,
    sizes: Sequence[int],
    start: LstmState,
    *,
    input_product: Product,
    recurrent_product: Product,
    projection_product: Product | None,
    cell_clip: float | None,
    projection_clip: float | None,
) -> tuple[Tensor, LstmState]:
    """Read packed rows, without gradients.

    Args:
        words: "words input", step by step (`Packing`).
        sizes: number of unfinished rows at each step; never increasing.
        start: initial states, in the order of the packing.
        input_product: from the inputs to their part of the gates, biases included.
        recurrent_product: from h to its part of the gates.
        projection_product: from the cell's output to h; None without projection.
        cell_clip: maximum absolute value of the cell state; None for no limit.
        projection_clip: maximum absolute value of a projected output; None for no limit.

    Returns:
        "words hidden", and the state of each row after its last word.
    """
    hidden, memory = start
    outputs, ended = [words.new_zeros(0, hidden.shape[1])], []
    first = 0
    for chunk in _chunks(sizes):
        num_words = sum(chunk)
        gates = input_product(words[first : first + num_words])
        first += num_words
        for inputs in torch.split(gates, chunk):
            rows = len(inputs)
            ended.append(LstmState(hidden[rows:], memory[rows:]))
            hidden, memory = hidden[:rows], memory[:rows]
            memory, hidden = step(
                recurrent_product(hidden), inputs, memory, cell_clip=cell_clip, keep=False
            )
            if projection_product is not None:
                hidden = _clamped(projection_product(hidden), projection_clip)
            outputs.append(hidden)
    ended.append(LstmState(hidden, memory))
    return torch.cat(outputs), _joined(ended)


def train_layer(
    gates: Tensor,
    sizes: Sequence[int],
    start: LstmState,
    *,
    recurrent_weight: Tensor,
    projection_weight: Tensor | None,
    cell_clip: float | None,
    projection_clip: float | None,
    precision: TrainingPrecision = "float32",
) -> tuple[Tensor, LstmState]:
    """Read packed rows, with gradients.

    Args:
        gates: "words 4*cell": the input half of the gates, biases added.
        sizes: see `read_layer`.
        start: see `read_layer`.
        recurrent_weight: "4*cell hidden".
        projection_weight: "hidden cell", or None.
        cell_clip: see `read_layer`.
        projection_clip: see `read_layer`.
        precision: of the products.

    Returns:
        As `read_layer`.
    """
    weights, clips = (recurrent_weight, projection_weight), (cell_clip, projection_clip)
    layer = TrainingLayer(*weights, tuple(sizes), *clips, precision)
    gates, start = gates.contiguous(), LstmState(*(state.contiguous() for state in start))
    function = _CompiledLayer if layer.is_supported(gates, *start) else _Layer
    outputs, hidden, memory = function.apply(  # type: ignore[no-untyped-call]
        gates, *weights, *start, layer
    )
    return outputs, LstmState(hidden, memory)


class _CompiledLayer(torch.autograd.Function):
    """`_Layer` with all steps in one call."""

    @staticmethod
    def forward(
        ctx: Any,
        gates: Tensor,
        recurrent_weight: Tensor,
        projection_weight: Tensor | None,
        hidden: Tensor,
        memory: Tensor,
        layer: TrainingLayer,
    ) -> tuple[Tensor, Tensor, Tensor]:
        start = LstmState(hidden, memory)
        activations, memories, cell_outputs, outputs = layer.forward(gates, *start)
        states = activations, memories, cell_outputs, outputs
        # The weights are saved so that a change before the backward pass is an error.
        ctx.save_for_backward(*start, *states, recurrent_weight, projection_weight)
        ctx.set_materialize_grads(False)  # carried states end the gradient
        ctx.layer = layer
        by_step = [torch.split(values, list(layer.sizes)) for values in (outputs, memories)]
        steps = [start, *map(LstmState, *by_step)]
        rows = [*layer.sizes, 0]
        end = _joined([LstmState(h[n:], c[n:]) for (h, c), n in zip(steps, rows, strict=True)])
        return outputs, end.hidden, end.memory

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, of_outputs: Tensor | None, of_hidden: Tensor | None, of_memory: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        hidden, memory, *states, _, _ = ctx.saved_tensors
        *_, cell_outputs, outputs = states
        layer = ctx.layer
        of_outputs = torch.zeros_like(outputs) if of_outputs is None else of_outputs.contiguous()
        of_state = [
            torch.zeros_like(state) if gradient is None else gradient.contiguous().clone()
            for gradient, state in ((of_hidden, hidden), (of_memory, memory))
        ]
        of_sums, of_projected = layer.backward((hidden, memory), states, of_outputs, *of_state)
        steps = [hidden, *torch.split(outputs, list(layer.sizes))]
        before = [h[:rows] for h, rows in zip(steps, layer.sizes, strict=False)]
        inputs = torch.cat(before) if before else outputs
        of_weight = weight_gradient(of_sums, inputs, layer.precision)
        of_projection = None
        if layer.projection_weight is not None:
            of_projection = weight_gradient(of_projected, cell_outputs, layer.precision)
        return of_sums, of_weight, of_projection, *of_state, None


class _Layer(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        gates: Tensor,
        recurrent_weight: Tensor,
        projection_weight: Tensor | None,
        hidden: Tensor,
        memory: Tensor,
        layer: TrainingLayer,
    ) -> tuple[Tensor, Tensor, Tensor]:
        sizes, precision = layer.sizes, layer.precision
        clips = cell_clip, projection_clip = layer.cell_clip, layer.projection_clip
        recurrent = prepared_for_update(recurrent_weight, precision)
        project = (
            None if projection_weight is None else prepared_for_update(projection_weight, precision)
        )
        ctx.save_for_backward(recurrent_weight, projection_weight)
        ctx.set_materialize_grads(False)  # carried states end the gradient
        ctx.sizes, ctx.clips, ctx.precision = sizes, clips, precision
        ctx.start = LstmState(hidden, memory)
        # For each step: h before, c before, activations, c after, the cell's output, h after.
        ctx.steps, ended = [], []
        for inputs in torch.split(gates, list(sizes)):
            rows = len(inputs)
            ended.append(LstmState(hidden[rows:], memory[rows:]))
            before = LstmState(hidden[:rows], memory[:rows])
            activations = recurrent(before.hidden)
            memory, cell_output = step(
                activations, inputs, before.memory, cell_clip=cell_clip, keep=True
            )
            hidden = cell_output
            if project is not None:
                hidden = _clamped(project(cell_output), projection_clip)
            ctx.steps.append((*before, activations, memory, cell_output, hidden))
        ended.append(LstmState(hidden, memory))
        end = _joined(ended)
        outputs = [tensors[-1] for tensors in ctx.steps]
        return torch.cat(outputs or [hidden[:0]]), end.hidden, end.memory

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, of_outputs: Tensor | None, of_hidden: Tensor | None, of_memory: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        recurrent_weight, projection_weight = ctx.saved_tensors
        if of_outputs is None:
            of_outputs = ctx.start.hidden.new_zeros(sum(ctx.sizes), ctx.start.hidden.shape[1])
        of_outputs = of_outputs.contiguous()  # kernels read its memory
        cell_clip, projection_clip = ctx.clips
        projection_clip = None if projection_weight is None else projection_clip
        of_recurrent = prepared_backward(recurrent_weight, ctx.precision)
        of_project = (
            None
            if projection_weight is None
            else prepared_backward(projection_weight, ctx.precision)
        )
        of_hidden, of_memory = (
            torch.zeros_like(state) if gradient is None else gradient.contiguous().clone()
            for gradient, state in zip((of_hidden, of_memory), ctx.start, strict=True)
        )
        of_sums = of_outputs.new_empty(len(of_outputs), len(recurrent_weight))
        of_projected = torch.empty_like(of_outputs)
        slices = [torch.split(t, list(ctx.sizes)) for t in (of_outputs, of_sums, of_projected)]
        for tensors, *of_step in reversed(list(zip(ctx.steps, *slices, strict=True))):
            _, before, activations, after, _, hidden = tensors
            of_output, sums, projected = of_step
            rows = len(of_output)
            clipped_gradient(of_output, of_hidden[:rows], hidden, projection_clip, projected)
            of_cell = projected if of_project is None else of_project(projected, None)
            step_backward(
                activations,
                before,
                after,
                of_cell,
                of_memory[:rows],
                cell_clip=cell_clip,
                of_sums=sums,
            )
            of_recurrent(sums, of_hidden[:rows])
        of_weight = _of_weight(recurrent_weight, of_sums, ctx, 0)
        of_projection = None
        if projection_weight is not None:
            of_projection = _of_weight(projection_weight, of_projected, ctx, 4)
        return of_sums, of_weight, of_projection, of_hidden, of_memory, None


def _of_weight(weight: Tensor, of_outputs: Tensor, ctx: Any, index: int) -> Tensor:
    """Return the gradient of the weight of a product whose inputs were saved in each step."""
    inputs = [tensors[index] for tensors in ctx.steps]
    if not inputs:
        return torch.zeros_like(weight)
    return weight_gradient(of_outputs, torch.cat(inputs).to(of_outputs.dtype), ctx.precision)


def _chunks(sizes: Sequence[int]) -> list[list[int]]:
    """Group the steps into runs of a bounded number of words; a step is never split."""
    chunks: list[list[int]] = []
    for size in sizes:
        if not chunks or sum(chunks[-1]) + size > _WORDS_AT_ONCE:
            chunks.append([])
        chunks[-1].append(size)
    return chunks


def _clamped(values: Tensor, limit: float | None) -> Tensor:
    return values if limit is None else values.clamp_(-limit, limit)


def _joined(ended: list[LstmState]) -> LstmState:
    """Join the states of rows that ended, the last ones to end first."""
    hidden, memory = map(torch.cat, zip(*reversed(ended), strict=True))
    return LstmState(hidden, memory)
