"""Large products in training: compiled from `blocked_product.c`, for CPUs with AVX-512.

Both operands change at every update, and either may be transposed. oneDNN copies them for each of
the calls that a recurrent layer makes, and must be given the transpose of one for the gradient of
a weight. Here a matrix is packed once, in any layout, and nothing is compiled for its size.
"""

from __future__ import annotations

from ctypes import byref, c_int, c_long, c_void_p, cast
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor

from elmo_framework.kernels.backend import require_shape, uses_cpu_code
from elmo_framework.kernels.compiler import library, pointers

TrainingPrecision: TypeAlias = Literal["float32", "bfloat16"]
"""Precision of the operands; sums and results are float32."""

NUMBERS: dict[TrainingPrecision, int] = {"float32": 0, "bfloat16": 1}
"""Of the precisions in `packed.h`."""

_GROUP = 64
"""The number of outputs in a block; `GROUP` in `packed.h`."""

_SMALLEST = 1 << 14
"""Of a matrix, in numbers: for fewer, a call takes longer than the product."""

_FEWEST_ROWS = 8
"""For which a matrix is packed."""

_NUMBERS_PER_THREAD = 1 << 16
"""Multiplications for which starting another thread pays off."""

_library = library(
    Path(__file__).with_suffix(".c"),
    fast_math=False,
    functions={
        "pack_matrix": [*[c_long] * 3, c_void_p, *[c_long] * 3, c_void_p],
        "blocked_product": [
            *[c_long] * 4,
            c_void_p,
            *[c_long] * 2,
            *[c_void_p] * 2,
            c_long,
            *[c_void_p] * 2,
        ],
        "describe": [c_void_p],
    },
)


class BlockedMatrix(NamedTuple):
    """A matrix "outputs inputs", packed for products of rows with it.

    Attributes:
        blocks: "outputs/64 inputs 64", rounded up; two inputs in 32 bits in bfloat16.
        num_outputs: number of rows of the matrix.
        num_inputs: number of its columns.
        precision: of both operands.
    """

    blocks: Tensor
    num_outputs: int
    num_inputs: int
    precision: TrainingPrecision

    def product(
        self, rows: Tensor, bias: Tensor | None = None, out: Tensor | None = None
    ) -> Tensor:
        """Return `rows matrix^T + bias`, in float32.

        Args:
            rows: "rows inputs", float32.
            bias: "outputs", float32.
            out: "rows outputs", float32 and contiguous: receives the result.

        Raises:
            ValueError: a tensor has another shape.
        """
        bias = None if bias is None else bias.contiguous()
        functions = _library(self.blocks, bias, out)
        if functions is None or rows.dtype != torch.float32 or not rows.is_cpu:
            raise TypeError("rows in float32 on the CPU are needed")
        require_shape("rows", rows, len(rows), self.num_inputs)
        if bias is not None:
            require_shape("bias", bias, self.num_outputs)
        if out is not None:
            require_shape("out", out, len(rows), self.num_outputs)
        rows = _readable(rows)
        result = rows.new_empty(len(rows), self.num_outputs) if out is None else out
        sizes = len(rows), self.num_inputs, self.num_outputs
        failed = c_int(0)
        functions.blocked_product(
            NUMBERS[self.precision],
            *sizes,
            rows.data_ptr(),
            *rows.stride(),
            *pointers(self.blocks, bias),
            _num_threads(sizes[0] * sizes[1] * sizes[2]),
            result.data_ptr(),
            byref(failed),
        )
        if failed.value:
            raise MemoryError("not enough memory for a product")
        return result


def blocked(matrix: Tensor, precision: TrainingPrecision) -> BlockedMatrix | None:
    """Pack a matrix "outputs inputs"; None if other products are faster, or for other types.

    Args:
        matrix: float32, on the CPU; the result does not change with it.
        precision: `bfloat16` rounds the matrix, and later the rows.
    """
    functions = _library()
    if functions is None or not is_blocked(matrix, precision):
        return None
    matrix = _readable(matrix.detach())
    num_outputs, num_inputs = matrix.shape
    depth = num_inputs if precision == "float32" else -(-num_inputs // 2)
    blocks = matrix.new_empty(-(-num_outputs // _GROUP), depth, _GROUP)
    functions.pack_matrix(
        NUMBERS[precision],
        num_outputs,
        num_inputs,
        matrix.data_ptr(),
        *matrix.stride(),
        _num_threads(matrix.numel()),
        blocks.data_ptr(),
    )
    return BlockedMatrix(blocks, num_outputs, num_inputs, precision)


def is_fast(place: Tensor, precision: TrainingPrecision) -> bool:
    """Return whether products with tensors like this one are fastest here."""
    return uses_cpu_code(place) and place.dtype == torch.float32 and precision in _fast_precisions()


def is_blocked(matrix: Tensor, precision: TrainingPrecision) -> bool:
    """Return whether `blocked` packs a matrix."""
    return is_fast(matrix, precision) and matrix.numel() >= max(1, _SMALLEST)


def product_address() -> int | None:
    """Return the address of the compiled product, for other compiled code; None without it."""
    functions = _library()
    return None if functions is None else cast(functions.blocked_product, c_void_p).value


def blocked_product(
    rows: Tensor, matrix: Tensor, bias: Tensor | None, precision: TrainingPrecision
) -> Tensor | None:
    """Return `rows matrix^T + bias`; None if other products are faster."""
    if len(rows) < _FEWEST_ROWS or rows.dtype != torch.float32:
        return None
    packed = blocked(matrix, precision)
    return None if packed is None else packed.product(rows.detach(), bias)


@cache
def _fast_precisions() -> tuple[TrainingPrecision, ...]:
    functions = _library()
    if functions is None:
        return ()
    are_fast = (c_int * len(NUMBERS))()
    functions.describe(are_fast)
    # oneDNN uses the tiles of CPUs that have them.
    has_tiles = torch.cpu._is_amx_tile_supported()
    return tuple(
        precision
        for precision, number in NUMBERS.items()
        if are_fast[number] and not (has_tiles and precision == "bfloat16")
    )


def _readable(matrix: Tensor) -> Tensor:
    """Make a matrix contiguous, unless one of its strides is 1."""
    return matrix if 1 in matrix.stride() else matrix.contiguous()


def _num_threads(work: int) -> int:
    return max(1, min(torch.get_num_threads(), work // _NUMBERS_PER_THREAD))
