"""An LSTM layer that reads one row in one call: compiled from `lstm_row.c`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ctypes import c_float, c_int, c_long, c_void_p
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple, TypeAlias

from torch import Tensor

from elmo_framework.kernels.compiler import library, pointers
from elmo_framework.kernels.lstm_step import NO_LIMIT, step_address
from elmo_framework.kernels.product import Product, chunk_of_sums

RowReader: TypeAlias = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor, Tensor]]
"""From "steps 4*cell" inputs of the gates, "1 hidden" h and "1 cell" c to "steps hidden", h, c."""

_GROUP = 64
"""The number of outputs in a block of a packed weight; `GROUP` in `lstm_row.c`."""

_LARGEST_WEIGHT = 1 << 21
"""In numbers: 8 MB. The time of a larger weight is that of reading it from memory."""

_library = library(
    Path(__file__).with_suffix(".c"),
    fast_math=False,
    functions={
        "packed_product": [c_long, c_long, c_long, c_int, *[c_void_p] * 3],
        "lstm_row": [*[c_long] * 5, c_float, c_float, *[c_void_p] * 9],
    },
)


class _PackedWeight(NamedTuple):
    """A weight in the layout of `packed_product`.

    Attributes:
        blocks: "outputs/64 inputs 64".
        chunk: the number of inputs of a partial sum.
    """

    blocks: Tensor
    chunk: int

    @property
    def cell(self) -> int:
        """The size of the cell, if this is the weight of the gates."""
        return len(self.blocks) * _GROUP // 4


def row_reader(
    recurrent: tuple[Tensor, Product],
    projection: tuple[Tensor, Product] | None,
    cell_clip: float | None,
    projection_clip: float | None,
) -> Callable[[], RowReader | None]:
    """Return what prepares a reader of single rows when it is first needed.

    The reader is None without a compiler, for large weights and for those that the compiled code
    does not support. Its results are bit-identical to those of a loop over the steps.

    Args:
        recurrent: "4*cell hidden", and its product.
        projection: "hidden cell", and its product; None without projection.
        cell_clip: maximum absolute value of the cell state; None for no limit.
        projection_clip: maximum absolute value of a projected output; None for no limit.
    """
    limits = [NO_LIMIT if clip is None else clip for clip in (cell_clip, projection_clip)]

    @cache
    def prepare() -> RowReader | None:
        gates = _packed(*recurrent)
        projected = None if projection is None else _packed(*projection)
        if gates is None or (projection is not None and projected is None):
            return None
        return partial(_read, gates, projected, limits)

    return prepare


def _read(
    gates: _PackedWeight,
    projection: _PackedWeight | None,
    limits: Sequence[float],
    inputs: Tensor,
    hidden: Tensor,
    memory: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    functions, num_steps = _library(inputs, hidden, memory), len(inputs)
    if functions is None:
        raise TypeError("rows in float32 on the CPU are needed, contiguous")
    outputs, states = inputs.new_empty(num_steps, hidden.shape[1]), memory.new_empty(2, gates.cell)
    states[0] = memory[0]
    sums, cell_output = inputs.new_empty(4 * gates.cell), inputs.new_empty(gates.cell)
    functions.lstm_row(
        num_steps,
        gates.cell,
        hidden.shape[1],
        gates.chunk,
        0 if projection is None else projection.chunk,
        *limits,
        step_address(),
        *pointers(gates.blocks, None if projection is None else projection.blocks),
        *pointers(inputs, hidden, sums, states, cell_output, outputs),
    )
    return outputs, outputs[-1:], states[num_steps % 2][None]


def _packed(weight: Tensor, product: Product) -> _PackedWeight | None:
    """Pack a weight; None if its product cannot have the bits of one of several rows."""
    weight = weight.detach()
    functions = _library(weight) if step_address() else None
    num_outputs, num_inputs = weight.shape
    if functions is None or num_outputs % _GROUP or weight.numel() > _LARGEST_WEIGHT:
        return None
    blocks = weight.view(-1, _GROUP, num_inputs).transpose(1, 2).contiguous()

    def multiplied(row: Tensor, chunk: int) -> Tensor:
        outputs = row.new_empty(1, num_outputs)
        sizes = num_outputs, num_inputs, chunk
        functions.packed_product(*sizes, False, *pointers(blocks, row, outputs))
        return outputs

    chunk = chunk_of_sums(multiplied, lambda row: product(row.expand(2, -1))[:1], num_inputs)
    return None if chunk is None else _PackedWeight(blocks, chunk)
