"""Product of a single row with a weight, limited only by the memory bandwidth.

oneDNN is slower there, and its result for a single row differs in the last bits from that for a
row among others. `row_product.c` is used only if its result is bit-identical to the latter.
"""

from __future__ import annotations

from collections.abc import Callable
from ctypes import c_long, c_void_p
from pathlib import Path

import torch
from torch import Tensor

from elmo_framework.kernels.compiler import library, pointers

_library = library(
    Path(__file__).with_suffix(".c"),
    fast_math=False,
    functions={
        "row_product": [c_long, c_long, c_long, *[c_void_p] * 3],
    },
)
_LANES = 16
_CHUNKS = (1024, 512)
"""Numbers of inputs over which oneDNN may compute partial sums before adding them."""


def row_product(
    weight: Tensor, bias: Tensor | None, among_others: Callable[[Tensor], Tensor]
) -> Callable[[Tensor], Tensor]:
    """Return the product of one row with a weight, bit-identical to that of a row among others.

    Args:
        weight: "outputs inputs".
        bias: "outputs", or None.
        among_others: oneDNN's product of a row among others.
    """
    functions = _library(weight)
    num_outputs, num_inputs = weight.shape
    if functions is None or num_outputs % _LANES or num_inputs % _LANES:
        return among_others

    def product(row: Tensor, chunk: int) -> Tensor:
        row = row.contiguous()
        outputs = weight.new_empty(1, num_outputs)
        functions.row_product(num_outputs, num_inputs, chunk, *pointers(weight, row, outputs))
        return outputs if bias is None else outputs.add_(bias)

    # Two orders of summation round differently somewhere in so many outputs of such numbers.
    probe = torch.linspace(-1, 1, num_inputs).pow(3)[None]
    expected = among_others(probe)
    for chunk in (num_inputs, *_CHUNKS):
        if torch.equal(product(probe, chunk), expected):
            return lambda row: product(row, chunk)
    return among_others
