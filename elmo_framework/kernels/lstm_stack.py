"""Frozen LSTM layers that read rows in one call: compiled from `lstm_stack.c`."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import Array, Structure, byref, c_float, c_int, c_long, c_void_p, cast
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from elmo_framework.kernels.backend import require_shape
from elmo_framework.kernels.compiler import library
from elmo_framework.kernels.lstm_step import NO_LIMIT, step_address
from elmo_framework.kernels.packed_product import CWeight, PackedWeight

LARGEST_WEIGHT = 1 << 21
"""Of a packed weight, in numbers: 8 MB in float32. Threads read a weight for their own rows, and
larger ones are limited by memory."""

_ROWS_AT_ONCE = 32
"""Rows of a task: enough to use a weight often while it is in the cache, which their gates fit."""

_library = library(
    Path(__file__).with_suffix(".c"),
    fast_math=False,
    functions={"read_stack": [c_void_p, c_long, c_void_p]},
)


class PackedLayer(NamedTuple):
    """The weights of a layer in one direction.

    Attributes:
        input: "4*cell input", with the bias of the gates.
        recurrent: "4*cell hidden".
        projection: "hidden cell"; None if h is not projected.
    """

    input: PackedWeight
    recurrent: PackedWeight
    projection: PackedWeight | None

    @property
    def sizes(self) -> tuple[int, int]:
        """The dimensions of h and c."""
        return self.recurrent.num_inputs, self.recurrent.num_outputs // 4


class _CLayer(Structure):
    """`lstm_layer` of `lstm_stack.c`."""

    _fields_ = (
        *((name, CWeight) for name in ("input", "recurrent", "projection")),
        *((name, c_void_p) for name in ("hidden", "memory")),
    )


class _CStack(Structure):
    """`lstm_stack` of `lstm_stack.c`."""

    _fields_ = (
        *((n, c_long) for n in ("num_layers", "num_directions", "num_rows", "num_tokens", "dim")),
        ("has_skip", c_int),
        *((name, c_float) for name in ("cell_limit", "hidden_limit")),
        *((n, c_void_p) for n in ("step", "layers", "order", "lengths", "words", "outputs")),
    )


@dataclass(frozen=True)
class PackedStack:
    """LSTM layers in one direction or two; every layer has the same dimensions of h and c.

    Attributes:
        directions: the layers of each, the first one first.
        has_skip: whether from the second layer on, the input is added to the output.
        cell_clip: maximum absolute value of c; None for no limit.
        projection_clip: maximum absolute value of a projected h; None for no limit.
    """

    directions: Sequence[Sequence[PackedLayer]]
    has_skip: bool
    cell_clip: float | None
    projection_clip: float | None

    def supports(self, words: Tensor) -> bool:
        """Return whether the compiled functions can read words."""
        return step_address() is not None and _library(words) is not None

    def read(
        self,
        words: Tensor,
        mask: Tensor,
        states: Sequence[Sequence[tuple[Tensor, Tensor]]],
        outputs: Tensor,
    ) -> None:
        """Read padded rows: the first direction from their first word, the second from their last.

        Args:
            words: "rows tokens input", float32 and contiguous.
            mask: "rows tokens": true at words, which come first in a row.
            states: h "rows hidden" and c "rows cell" by direction and layer; replaced by those
                after the last word of each row.
            outputs: "layers rows tokens directions*hidden": receives h; nothing at padding.

        Raises:
            TypeError: the words or a state are of another type, or not contiguous.
            ValueError: a tensor has another shape.
        """
        functions = _library(words, outputs)
        if functions is None:
            raise TypeError("words in float32 on the CPU are needed, contiguous")
        num_rows, num_tokens, dim = words.shape
        self._require_shapes(words, mask, states, outputs)
        lengths, order = mask.sum(dim=1).sort(descending=True, stable=True)
        limits = [NO_LIMIT if x is None else x for x in (self.cell_clip, self.projection_clip)]
        num_layers, num_directions = len(self.directions[0]), len(self.directions)
        sizes = num_layers, num_directions, num_rows, num_tokens, dim
        layers = self._layers(states)
        places = [tensor.data_ptr() for tensor in (order, lengths, words, outputs)]
        stack = _CStack(
            *sizes, self.has_skip, *limits, step_address(), cast(layers, c_void_p), *places
        )
        # Every thread has as much to do: rows of each direction.
        per_thread = -(-num_rows * num_directions // torch.get_num_threads())
        failed = c_int(0)
        functions.read_stack(byref(stack), max(1, min(_ROWS_AT_ONCE, per_thread)), byref(failed))
        if failed.value:
            raise MemoryError("not enough memory for the gates of LSTM layers")

    def _require_shapes(
        self,
        words: Tensor,
        mask: Tensor,
        states: Sequence[Sequence[tuple[Tensor, Tensor]]],
        outputs: Tensor,
    ) -> None:
        num_rows, num_tokens, _ = words.shape
        (first, *_), num_directions = self.directions[0], len(self.directions)
        hidden_size, cell_size = first.sizes
        require_shape("words", words, num_rows, num_tokens, first.input.num_inputs)
        require_shape("mask", mask, num_rows, num_tokens)
        width = num_directions * hidden_size
        require_shape("outputs", outputs, len(self.directions[0]), num_rows, num_tokens, width)
        for hidden, memory in chain.from_iterable(states):
            if _library(hidden, memory) is None:
                raise TypeError("states in float32 on the CPU are needed, contiguous")
            require_shape("hidden", hidden, num_rows, hidden_size)
            require_shape("memory", memory, num_rows, cell_size)

    def _layers(self, states: Sequence[Sequence[tuple[Tensor, Tensor]]]) -> Array[_CLayer]:
        layers = [
            _CLayer(
                layer.input.c_weight(),
                layer.recurrent.c_weight(),
                CWeight() if layer.projection is None else layer.projection.c_weight(),
                hidden.data_ptr(),
                memory.data_ptr(),
            )
            for direction, of_direction in zip(self.directions, states, strict=True)
            for layer, (hidden, memory) in zip(direction, of_direction, strict=True)
        ]
        return (_CLayer * len(layers))(*layers)
