"""Weights in the layout of `packed.h`, and products with them: compiled from `packed_product.c`."""

from __future__ import annotations

from collections.abc import Mapping
from ctypes import Structure, byref, c_long, c_void_p
from pathlib import Path
from typing import NamedTuple, get_args

import torch
from torch import Tensor

from elmo_framework.kernels.backend import require_shape
from elmo_framework.kernels.compiler import library, pointers
from elmo_framework.kernels.precision import Precision as Precision

ARITHMETIC: Mapping[Precision, str] = {
    "float32": "float32",
    "bfloat16": "bfloat16",
    "int8": "int8, a scale per row",
}
"""Identifies the numbers that a precision gives. What is kept on the disk has it in its key, so
that results of an earlier arithmetic (the first int8 had one scale for all rows) are not mixed in.
Earlier float32 differs in its last bits only, by less than the vectors of a sentence in two batches
do, so files and caches of earlier versions are continued.
"""

_GROUP = 64
"""The number of outputs in a block; `GROUP` in `packed.h`."""

_LARGEST, _OFFSET, _SMALLEST = 127, 128, 1e-30
"""The largest int8, the offset from int8 to uint8, and the smallest maximum of a row."""


class CWeight(Structure):
    """`packed_weight` of `packed.h`; without a weight, all its pointers are null."""

    _fields_ = (
        *((name, c_void_p) for name in ("blocks", "bias", "scales", "offsets")),
        *((name, c_long) for name in ("outputs", "inputs", "precision")),
    )


_library = library(
    Path(__file__).with_suffix(".c"),
    fast_math=False,
    functions={"product_of_rows": [c_void_p, c_long, *[c_void_p] * 4]},
)


class PackedWeight(NamedTuple):
    """A weight "outputs inputs", in one of three precisions.

    Attributes:
        blocks: "outputs/64 inputs/n 64": n numbers of a row, in 32 bits.
        bias: "outputs", or None.
        scales: of int8, "outputs"; None otherwise.
        offsets: of int8, "outputs": -128 times the sum of the numbers of an output.
        num_inputs: of a row.
        precision: of the numbers.
    """

    blocks: Tensor
    bias: Tensor | None
    scales: Tensor | None
    offsets: Tensor | None
    num_inputs: int
    precision: Precision

    @property
    def num_outputs(self) -> int:
        return len(self.blocks) * _GROUP

    def c_weight(self) -> CWeight:
        """Return the weight for compiled functions; it refers to the memory of this one."""
        tensors = pointers(self.blocks, self.bias, self.scales, self.offsets)
        number = get_args(Precision).index(self.precision)
        return CWeight(*tensors, self.num_outputs, self.num_inputs, number)

    def product(self, rows: Tensor) -> Tensor:
        """Return the products of "rows inputs" with the weight, plus the bias.

        Raises:
            ValueError: the rows have another width.
        """
        require_shape("rows", rows, len(rows), self.num_inputs)
        rows = rows.contiguous()
        functions = _library(rows)
        if functions is None:
            raise TypeError("rows in float32 on the CPU are needed")
        outputs = rows.new_empty(len(rows), self.num_outputs)
        size = 0 if self.precision == "float32" else len(rows)
        scratch = rows.new_empty(size, self.num_inputs), rows.new_empty(size)
        functions.product_of_rows(
            byref(self.c_weight()), len(rows), *pointers(rows, *scratch, outputs)
        )
        return outputs


def pack(weight: Tensor, bias: Tensor | None, precision: Precision) -> PackedWeight | None:
    """Pack a weight; None without a compiler, and for sizes that the compiled code does not have.

    Args:
        weight: "outputs inputs".
        bias: "outputs", or None; it stays float32.
        precision: `int8` has a scale for each output.
    """
    num_outputs, num_inputs = weight.shape
    # Four numbers of a row are read at once.
    numbers, scales, offsets = weight.detach().contiguous(), None, None
    if _library(numbers, bias) is None or num_outputs % _GROUP or num_inputs % 4:
        return None
    if precision == "bfloat16":
        numbers = numbers.to(torch.bfloat16)
    elif precision == "int8":
        numbers, scales = quantized(numbers)
        offsets = -_OFFSET * numbers.sum(dim=1, dtype=torch.int32)
    together = numbers.contiguous().view(torch.float32)  # several numbers in 32 bits
    blocks = together.view(-1, _GROUP, together.shape[1]).transpose(1, 2)
    detached = None if bias is None else bias.detach()
    return PackedWeight(blocks.contiguous(), detached, scales, offsets, num_inputs, precision)


def quantized(values: Tensor) -> tuple[Tensor, Tensor]:
    """Return "rows dim" as int8, and the scale of each row."""
    scales = row_scales(values)
    return (values / scales[:, None]).round().to(torch.int8), scales


def row_scales(values: Tensor) -> Tensor:
    """Return the factor from int8 to the numbers of each row, whose largest is 127."""
    return values.abs().amax(dim=1).clamp(min=_SMALLEST) / _LARGEST
