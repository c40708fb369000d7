"""Matrix products with weights: the fastest exact backend of the CPU, or a lower precision.

Weights that do not change are packed for our own products, and so are those of large products in
training. PyTorch uses MKL for other float32 products on the CPU, which runs at half speed on CPUs
that are not Intel's. oneDNN, which is part of PyTorch too, does not; it is called explicitly here,
so that no global setting changes. Its result for a row is also bit-identical for any number of
other rows from two on; a single row is therefore duplicated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from elmo_framework.kernels.backend import autocast_dtype, is_traced, uses_cpu_code
from elmo_framework.kernels.blocked_product import TrainingPrecision as TrainingPrecision
from elmo_framework.kernels.blocked_product import blocked, blocked_product, is_fast
from elmo_framework.kernels.packed_product import ARITHMETIC as ARITHMETIC
from elmo_framework.kernels.packed_product import Precision as Precision
from elmo_framework.kernels.packed_product import pack, quantized, row_scales

Product: TypeAlias = Callable[[Tensor], Tensor]
"""From "rows in" to "rows out", without gradients."""

BackwardProduct: TypeAlias = Callable[[Tensor, Tensor | None], Tensor]
"""From the gradients of rows out to those of rows in, which a second tensor receives if given."""

# oneDNN compiles code for each number of rows and caches it, a third of a megabyte each. So only
# some numbers are used: those with only their four highest bits set, and multiples of 128.
_NUM_BITS, _STEP_OF_ROWS = 4, 128

_OFFSET = 128
"""From int8 to uint8."""

# The layout that oneDNN chooses for so many rows is valid for every number of rows.
_NUM_ROWS_OF_LAYOUT = 64


def has_onednn(weight: Tensor) -> bool:
    """Return whether oneDNN supports products with a weight."""
    return (
        uses_cpu_code(weight)
        and weight.dtype == torch.float32
        and torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    )


def has_bfloat16() -> bool:
    """Return whether oneDNN computes in bfloat16 on this CPU, which takes AVX-512."""
    supported: bool = torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return supported


def require_support(weight: Tensor, precision: Precision) -> None:
    """Raise a ValueError if the device or the type of a weight does not support a precision."""
    if precision == "int8" and not has_onednn(weight):
        raise ValueError("precision int8 needs a float32 model on the CPU (cpu)")


def prepared(
    weight: Float[Tensor, "out in"],
    bias: Float[Tensor, " out"] | None = None,
    precision: Precision = "float32",
) -> Product:
    """Return the product `x weight^T + bias`, its weight laid out for many calls.

    Args:
        weight: must not be changed later.
        bias: added in full precision.
        precision: `bfloat16` rounds x and the weight; `int8` quantizes both to 8 bits, each with a
            scale per row, on the CPU only.

    Raises:
        ValueError: the device does not support this precision.
    """
    require_support(weight, precision)
    if packed := pack(weight, bias, precision):
        return packed.product
    weight, bias = weight.detach(), None if bias is None else bias.detach()
    if precision == "bfloat16":
        return _bfloat16(weight, bias)
    return _int8(weight, bias) if precision == "int8" else laid_out(weight, bias)


def laid_out(weight: Tensor, bias: Tensor | None = None) -> Product:
    """Return the product in float32 for the calls of one update, by oneDNN: packing takes longer.

    Args:
        weight: "outputs inputs"; must not be changed later.
        bias: "outputs", or None.
    """
    weight, bias = weight.detach(), None if bias is None else bias.detach()
    if not has_onednn(weight):
        return lambda rows: functional.linear(rows, weight, bias)
    of_onednn = torch.ops.mkldnn._reorder_linear_weight(weight, _NUM_ROWS_OF_LAYOUT)
    return lambda rows: _onednn(rows, of_onednn, bias)


def linear(
    inputs: Float[Tensor, "*batch in"],
    weight: Float[Tensor, "out in"],
    bias: Float[Tensor, " out"] | None = None,
) -> Float[Tensor, "*batch out"]:
    """Return `inputs weight^T + bias`, with gradients.

    With autocast to bfloat16, sums and outputs are float32 where the CPU is fast at that.
    """
    narrow = autocast_dtype(weight)
    is_bfloat16 = narrow == torch.bfloat16 and is_fast(weight, "bfloat16")
    if (narrow and not is_bfloat16) or not has_onednn(weight) or is_traced():
        return functional.linear(inputs, weight, bias)
    precision: TrainingPrecision = "bfloat16" if is_bfloat16 else "float32"
    rows = inputs.reshape(-1, inputs.shape[-1]).to(weight.dtype)
    outputs: Tensor = _Linear.apply(rows, weight, bias, precision)  # type: ignore[no-untyped-call]
    return outputs.view(*inputs.shape[:-1], len(weight))


def product(rows: Tensor, weight: Tensor) -> Tensor:
    """Return `rows weight^T` for one call, without gradients."""
    if has_onednn(weight) and rows.dtype == weight.dtype:
        return _onednn(rows, _readable(weight), None)
    return rows @ weight.T


def training_product(
    rows: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    precision: TrainingPrecision = "float32",
) -> Tensor:
    """Return `rows weight^T + bias` for one call in training, in the type of the rows.

    Its sums may be added up in another order than those of `product`.

    Args:
        rows: "rows inputs".
        weight: "outputs inputs".
        bias: "outputs", or None.
        precision: `bfloat16` rounds rows and weight.
    """
    outputs = blocked_product(rows, weight, bias, precision)
    if outputs is not None:
        return outputs
    if precision == "bfloat16":
        narrow = product(rows.to(torch.bfloat16), weight.to(torch.bfloat16))
        return _plus(narrow, bias, rows)
    if bias is None or not has_onednn(weight):
        return _plus(product(rows, weight), bias, rows)
    return _onednn(rows, _readable(weight), bias)


def prepared_for_update(weight: Tensor, precision: TrainingPrecision) -> Product:
    """Return the product `x weight^T` for the calls of one update."""
    if packed := blocked(weight, precision):
        return packed.product
    return laid_out(weight) if precision == "float32" else prepared(weight, None, precision)


def prepared_backward(weight: Tensor, precision: TrainingPrecision) -> BackwardProduct:
    """Return the product `g weight`, the gradient of x, for the calls of one update."""
    if packed := blocked(weight.T, precision):
        return lambda gradient, out: packed.product(gradient, out=out)
    narrow = weight.to(torch.bfloat16) if precision == "bfloat16" else weight

    def multiplied(gradient: Tensor, out: Tensor | None) -> Tensor:
        rows = gradient.to(narrow.dtype)
        if out is None:
            return product(rows, narrow.T).to(gradient.dtype)
        if uses_cpu_code(out) or rows.dtype != out.dtype:
            return out.copy_(product(rows, narrow.T))
        return torch.mm(rows, narrow, out=out)

    return multiplied


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, rows: Tensor, weight: Tensor, bias: Tensor | None, precision: TrainingPrecision
    ) -> Tensor:
        ctx.save_for_backward(rows, weight)
        ctx.precision = precision
        if any(ctx.needs_input_grad) or precision == "bfloat16":
            return training_product(rows, weight, bias, precision=precision)
        return _onednn(rows, _readable(weight), bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        rows, weight = ctx.saved_tensors
        of_rows, of_weight, of_bias, _ = ctx.needs_input_grad
        precision = ctx.precision
        return (
            training_product(gradient, weight.T, precision=precision) if of_rows else None,
            weight_gradient(gradient, rows, precision) if of_weight else None,
            gradient.sum(dim=0) if of_bias else None,
            None,
        )


def weight_gradient(
    gradient: Tensor, rows: Tensor, precision: TrainingPrecision = "float32"
) -> Tensor:
    """Return `gradient^T rows`, the gradient of a weight, as one product."""
    if gradient.dtype == rows.dtype:
        of_weight = blocked_product(gradient.T, rows.T, None, precision)
        if of_weight is not None:
            return of_weight
    if precision == "bfloat16":
        narrow = weight_gradient(gradient.to(torch.bfloat16), rows.to(torch.bfloat16))
        return narrow.to(gradient.dtype)
    # oneDNN compiles code for the number of rows here too; one operand must be transposed, and
    # there must be at least one row.
    is_served = has_onednn(gradient) and rows.dtype == gradient.dtype and len(rows) > 0
    if not is_served or rounded_up(len(rows)) != len(rows):
        return gradient.T @ rows
    if gradient.shape[1] < rows.shape[1]:
        return _multiplied(gradient.T.contiguous(), rows.T, None)
    return _multiplied(rows.T.contiguous(), gradient.T, None).T.contiguous()


def rounded_up(num_rows: int) -> int:
    """Round up to a number of rows for which oneDNN's code is reused; for two rows or more."""
    step = min(_STEP_OF_ROWS, 1 << max(0, num_rows.bit_length() - _NUM_BITS))
    return num_rows + -num_rows % step


def _readable(weight: Tensor) -> Tensor:
    """Make a weight contiguous, unless its transpose is: oneDNN is very slow with others."""
    return weight if weight.is_contiguous() or weight.T.is_contiguous() else weight.contiguous()


def _onednn(rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    num_rows = len(rows)
    padded = rows.contiguous()
    if num_rows == 1:
        padded = padded.expand(2, -1).contiguous()
    elif missing := rounded_up(num_rows) - num_rows:
        padded = functional.pad(padded, (0, 0, 0, missing))
    return _multiplied(padded, weight, bias)[:num_rows]


def _multiplied(rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    outputs: Tensor = torch.ops.mkldnn._linear_pointwise(rows, weight, bias, "none", [], "")
    return outputs


def _bfloat16(weight: Tensor, bias: Tensor | None) -> Product:
    narrow = weight.to(torch.bfloat16)
    if not (has_onednn(weight) and has_bfloat16()):
        return lambda rows: _plus(functional.linear(rows.to(narrow.dtype), narrow), bias, weight)
    of_onednn = torch.ops.mkldnn._reorder_linear_weight(narrow, _NUM_ROWS_OF_LAYOUT)
    return lambda rows: _plus(_onednn(rows.to(narrow.dtype), of_onednn, None), bias, weight)


def _int8(weight: Tensor, bias: Tensor | None) -> Product:
    narrow, scales = quantized(weight)
    sums = _sums_of_int8(narrow) if _has_exact_int8() else laid_out(narrow.to(weight.dtype))

    def multiplied(rows: Tensor) -> Tensor:
        of_rows = row_scales(rows)[:, None]
        outputs = sums((rows / of_rows).round_())
        return _plus(outputs.mul_(scales).mul_(of_rows), bias, weight)

    return multiplied


def _has_exact_int8() -> bool:
    """Return whether oneDNN adds products of int8 in 32 bits.

    On CPUs without VNNI it adds pairs of them in 16 bits, which are too few for 8-bit weights.
    """
    return torch.cpu._is_vnni_supported()


def _sums_of_int8(weight: Tensor) -> Product:
    """Return the product with whole numbers from -127 to 127, in float32."""
    of_onednn = torch.ops.onednn.qlinear_prepack(weight, None)
    scales = torch.ones(len(weight))
    offsets = torch.zeros(len(weight), dtype=torch.int)

    def multiplied(rows: Tensor) -> Tensor:
        shifted = (rows + _OFFSET).to(torch.uint8)
        arguments = (shifted, 1.0, _OFFSET, of_onednn, scales, offsets, None)
        outputs: Tensor = torch.ops.onednn.qlinear_pointwise(
            *arguments, 1.0, 0, torch.float32, "none", [], ""
        )
        return outputs

    return multiplied


def _plus(outputs: Tensor, bias: Tensor | None, like: Tensor) -> Tensor:
    wide = outputs.to(like.dtype)
    return wide if bias is None else wide.add_(bias)
