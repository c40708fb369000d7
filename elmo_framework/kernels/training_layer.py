"""LSTM layers in training, all steps in one call: compiled from `training_layer.c`."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import Structure, byref, c_float, c_int, c_long, c_void_p
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from elmo_framework.kernels.backend import require_shape
from elmo_framework.kernels.blocked_product import (
    NUMBERS,
    BlockedMatrix,
    TrainingPrecision,
    blocked,
    is_blocked,
    product_address,
)
from elmo_framework.kernels.compiler import library, pointers
from elmo_framework.kernels.lstm_step import NO_LIMIT, backward_address, step_address

_library = library(
    Path(__file__).with_suffix(".c"),
    fast_math=False,
    functions={
        "train_forward": [*[c_void_p] * 3],
        "train_backward": [*[c_void_p] * 8],
    },
)


class _CLayer(Structure):
    """`training_layer` of `training_layer.c`."""

    _fields_ = (
        *((name, c_long) for name in ("num_steps", "cell", "hidden", "precision", "threads")),
        *((name, c_float) for name in ("cell_limit", "hidden_limit")),
        *((name, c_void_p) for name in ("product", "step", "back", "sizes")),
        *((name, c_void_p) for name in ("recurrent", "projection")),
        *((name, c_void_p) for name in ("start_hidden", "start_memory")),
        *((name, c_void_p) for name in ("gates", "memory", "cell_outputs", "outputs")),
    )


@dataclass(frozen=True)
class TrainingLayer:
    """An LSTM layer over packed rows, in float32 on the CPU.

    Attributes:
        recurrent_weight: "4*cell hidden".
        projection_weight: "hidden cell", or None.
        sizes: number of unfinished rows at each step; never increasing.
        cell_clip: maximum absolute value of c; None for no limit.
        projection_clip: maximum absolute value of a projected h; None for no limit.
        precision: of the products.
    """

    recurrent_weight: Tensor
    projection_weight: Tensor | None
    sizes: Sequence[int]
    cell_clip: float | None
    projection_clip: float | None
    precision: TrainingPrecision

    def is_supported(self, *tensors: Tensor) -> bool:
        """Return whether the compiled functions can compute it, from these tensors."""
        weights = self.recurrent_weight, self.projection_weight
        return (
            all(is_blocked(each, self.precision) for each in weights if each is not None)
            and _library(*tensors) is not None
            and None not in {product_address(), step_address(), backward_address()}
        )

    def forward(self, inputs: Tensor, hidden: Tensor, memory: Tensor) -> list[Tensor]:
        """Read all words.

        Args:
            inputs: "words 4*cell": the input half of the gates.
            hidden: "rows hidden": h before the first step.
            memory: "rows cell": c before it.

        Returns:
            For all words, step by step: the activations, c, the output of the cell, and h.
        """
        functions = _library(inputs, hidden, memory)
        assert functions is not None
        num_words, cell = self._require_shapes(inputs, hidden, memory)
        states = [inputs.new_empty(num_words, width) for width in (4 * cell, cell, cell)]
        if self.projection_weight is None:
            states.append(states[-1])
        else:
            states.append(inputs.new_empty(num_words, hidden.shape[1]))
        packed = self._packed(is_backward=False)
        sizes = torch.tensor(self.sizes, dtype=torch.int64)
        layer = self._c_layer(packed, sizes, [hidden, memory], states)
        failed = c_int(0)
        functions.train_forward(byref(layer), inputs.data_ptr(), byref(failed))
        _require_memory(failed)
        return states

    def _require_shapes(self, inputs: Tensor, hidden: Tensor, memory: Tensor) -> tuple[int, int]:
        """Return the number of words and the dimension of c."""
        num_gates, size = self.recurrent_weight.shape
        num_words, cell, num_rows = sum(self.sizes), num_gates // 4, max(self.sizes, default=0)
        require_shape("inputs", inputs, num_words, num_gates)
        require_shape("hidden", hidden, max(num_rows, len(hidden)), size)
        require_shape("memory", memory, len(hidden), cell)
        if self.projection_weight is not None:
            require_shape("projection_weight", self.projection_weight, size, cell)
        return num_words, cell

    def backward(
        self,
        start: Sequence[Tensor],
        states: Sequence[Tensor],
        of_outputs: Tensor,
        of_hidden: Tensor,
        of_memory: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Backpropagate through all steps.

        Args:
            start: h and c before the first step.
            states: returned by `forward`.
            of_outputs: "words hidden": the gradient of h as an output.
            of_hidden: "rows hidden": the gradient of the last h of each row; replaced by that of
                the one before the first step.
            of_memory: "rows cell": the same for c.

        Returns:
            "words 4*cell" and "words hidden": the gradients of the sums of the gates, and of h
            before it is clipped.
        """
        functions = _library(*start, *states, of_outputs, of_hidden, of_memory)
        assert functions is not None
        of_sums, of_projected = torch.empty_like(states[0]), torch.empty_like(of_outputs)
        scratch = torch.empty_like(of_memory)
        packed = self._packed(is_backward=True)
        sizes = torch.tensor(self.sizes, dtype=torch.int64)
        layer = self._c_layer(packed, sizes, start, states)
        failed = c_int(0)
        tensors = of_outputs, of_hidden, of_memory, of_sums, of_projected, scratch
        functions.train_backward(byref(layer), *pointers(*tensors), byref(failed))
        _require_memory(failed)
        return of_sums, of_projected

    def _packed(self, *, is_backward: bool) -> list[BlockedMatrix | None]:
        weights = self.recurrent_weight, self.projection_weight
        return [
            None if weight is None else blocked(weight.T if is_backward else weight, self.precision)
            for weight in weights
        ]

    def _c_layer(
        self,
        packed: Sequence[BlockedMatrix | None],
        sizes: Tensor,
        start: Sequence[Tensor],
        states: Sequence[Tensor],
    ) -> _CLayer:
        """Return the layer for the compiled functions; it refers to the memory of the tensors."""
        hidden, memory = start
        limits = [NO_LIMIT if x is None else x for x in (self.cell_clip, self.projection_clip)]
        blocks = [None if each is None else each.blocks for each in packed]
        return _CLayer(
            *(len(self.sizes), memory.shape[1], hidden.shape[1], NUMBERS[self.precision]),
            torch.get_num_threads(),
            *limits,
            *(product_address(), step_address(), backward_address()),
            *pointers(sizes, *blocks, *start, *states),
        )


def _require_memory(failed: c_int) -> None:
    if failed.value:
        raise MemoryError("not enough memory for the products of an LSTM layer")
