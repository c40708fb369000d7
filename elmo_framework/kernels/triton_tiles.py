"""Triton kernels of operators that are products in tiles.

What follows a product is computed before a tile leaves the multiprocessor. Sums are in float32,
whatever the type of the tensors; float32 is never rounded to TF32.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

_LOWEST = tl.constexpr(-3.4028234663852886e38)
"""The logit of a target among the candidates: `torch.finfo(torch.float32).min`."""

_FEWEST = 16
"""Fewest numbers that a product of tiles sums over."""

_ROWS_PER_SUM = 128
"""Rows per partial sum of the gradient of a convolution's weight."""


class _Tile(NamedTuple):
    rows: int
    columns: int
    depth: int
    num_warps: int
    num_stages: int


_NARROW, _WIDE = _Tile(128, 128, 64, 8, 3), _Tile(64, 64, 32, 4, 2)
"""For bfloat16, and for types of twice its width."""


@triton.jit
def _logits(  # type: ignore[no-untyped-def]
    inputs,
    weight,
    bias,
    targets,
    ids,
    row,
    column,
    num_rows,
    num_columns,
    dim,
    has_targets: tl.constexpr,
    tile_rows: tl.constexpr,
    tile_columns: tl.constexpr,
    depth: tl.constexpr,
):
    is_row, is_column = row < num_rows, column < num_columns
    x = inputs + row.to(tl.int64)[:, None] * dim
    w = weight + column.to(tl.int64)[None, :] * dim
    total = tl.zeros((tile_rows, tile_columns), tl.float32)
    for first in range(0, dim, depth):
        k = first + tl.arange(0, depth)
        left = tl.load(x + k[None, :], is_row[:, None] & (k < dim)[None, :], other=0.0)
        right = tl.load(w + k[:, None], (k < dim)[:, None] & is_column[None, :], other=0.0)
        total = tl.dot(left, right, total, input_precision="ieee")
    total += tl.load(bias + column, is_column, other=0.0).to(tl.float32)[None, :]
    if has_targets:
        target = tl.load(targets + row, is_row, other=-1)
        candidate = tl.load(ids + column, is_column, other=-2)
        total = tl.where(target[:, None] == candidate[None, :], _LOWEST, total)
    return tl.where(is_column[None, :], total, float("-inf"))


@triton.jit
def _log_sum_exp(  # type: ignore[no-untyped-def]
    inputs,
    weight,
    bias,
    targets,
    ids,
    out,
    num_rows,
    num_columns,
    dim,
    has_targets: tl.constexpr,
    tile_rows: tl.constexpr,
    tile_columns: tl.constexpr,
    depth: tl.constexpr,
):
    row = tl.program_id(0) * tile_rows + tl.arange(0, tile_rows)
    column = tl.program_id(1) * tile_columns + tl.arange(0, tile_columns)
    logits = _logits(
        inputs,
        weight,
        bias,
        targets,
        ids,
        row,
        column,
        num_rows,
        num_columns,
        dim,
        has_targets,
        tile_rows,
        tile_columns,
        depth,
    )
    largest = tl.max(logits, 1)
    sums = tl.sum(tl.exp(logits - largest[:, None]), 1)
    tl.store(out + tl.program_id(1) * num_rows + row, largest + tl.log(sums), row < num_rows)


@triton.jit
def _log_sum_exp_backward(  # type: ignore[no-untyped-def]
    inputs,
    weight,
    bias,
    targets,
    ids,
    sums,
    gradient,
    of_logits,
    of_bias,
    num_rows,
    num_columns,
    dim,
    has_targets: tl.constexpr,
    tile_rows: tl.constexpr,
    tile_columns: tl.constexpr,
    depth: tl.constexpr,
):
    row = tl.program_id(0) * tile_rows + tl.arange(0, tile_rows)
    column = tl.program_id(1) * tile_columns + tl.arange(0, tile_columns)
    logits = _logits(
        inputs,
        weight,
        bias,
        targets,
        ids,
        row,
        column,
        num_rows,
        num_columns,
        dim,
        has_targets,
        tile_rows,
        tile_columns,
        depth,
    )
    is_row, is_column = row < num_rows, column < num_columns
    factor = tl.load(gradient + row, is_row, other=0.0).to(tl.float32)
    values = tl.exp(logits - tl.load(sums + row, is_row, other=0.0)[:, None]) * factor[:, None]
    values = tl.where(is_row[:, None], values, 0.0)
    at = of_logits + row.to(tl.int64)[:, None] * num_columns + column[None, :]
    tl.store(at, values, is_row[:, None] & is_column[None, :])
    tl.store(of_bias + tl.program_id(0) * num_columns + column, tl.sum(values, 0), is_column)


@triton.jit
def _window_maxima(  # type: ignore[no-untyped-def]
    inputs,
    weight,
    maxima,
    places,
    num_rows,
    num_filters,
    row_size,
    dim,
    window_size,
    num_windows,
    tile_rows: tl.constexpr,
    tile_columns: tl.constexpr,
    depth: tl.constexpr,
):
    row = tl.program_id(0) * tile_rows + tl.arange(0, tile_rows)
    column = tl.program_id(1) * tile_columns + tl.arange(0, tile_columns)
    k = tl.arange(0, depth)
    is_row, is_filter, is_inside = row < num_rows, column < num_filters, k < window_size
    filters = tl.load(
        weight + column[None, :] * window_size + k[:, None],
        is_inside[:, None] & is_filter[None, :],
        other=0.0,
    )
    best = tl.full((tile_rows, tile_columns), float("-inf"), tl.float32)
    place = tl.zeros((tile_rows, tile_columns), tl.int32)
    first = inputs + row[:, None] * row_size + k[None, :]
    for number in range(num_windows):
        window = tl.load(first + number * dim, is_row[:, None] & is_inside[None, :], other=0.0)
        value = tl.dot(window, filters, input_precision="ieee")
        is_better = (value > best) | (value != value)  # NaN stays, as in PyTorch
        best = tl.where(is_better, value, best)
        place = tl.where(is_better, number, place)
    at = row[:, None] * num_filters + column[None, :]
    is_output = is_row[:, None] & is_filter[None, :]
    tl.store(maxima + at, best, is_output)
    tl.store(places + at, place, is_output)


@triton.jit
def _inputs_gradient(  # type: ignore[no-untyped-def]
    gradient,
    places,
    weight,
    of_inputs,
    num_rows,
    num_filters,
    row_size,
    dim,
    window_size,
    tile_rows: tl.constexpr,
    tile_columns: tl.constexpr,
    depth: tl.constexpr,
):
    row, step = tl.program_id(0) * tile_rows + tl.arange(0, tile_rows), tl.program_id(1)
    d, is_row = tl.arange(0, depth), row < num_rows
    total = tl.zeros((tile_rows, depth), tl.float32)
    for first in range(0, num_filters, tile_columns):
        column = first + tl.arange(0, tile_columns)
        is_filter = column < num_filters
        is_output = is_row[:, None] & is_filter[None, :]
        at = row[:, None] * num_filters + column[None, :]
        values = tl.load(gradient + at, is_output, other=0.0)
        place = tl.load(places + at, is_output, other=-1)
        for start in range(0, window_size, dim):
            filters = tl.load(
                weight + column[:, None] * window_size + start + d[None, :],
                is_filter[:, None] & (d < dim)[None, :],
                other=0.0,
            )
            chosen = tl.where(place * dim == step * dim - start, values, 0.0)
            total = tl.dot(chosen.to(values.dtype), filters, total, input_precision="ieee")
    at = row[:, None] * row_size + step * dim + d[None, :]
    tl.store(of_inputs + at, total, is_row[:, None] & (d < dim)[None, :])


@triton.jit
def _weight_gradient(  # type: ignore[no-untyped-def]
    gradient,
    places,
    inputs,
    of_weight,
    num_rows,
    num_filters,
    row_size,
    dim,
    window_size,
    num_windows,
    num_summed,
    tile_rows: tl.constexpr,
    tile_columns: tl.constexpr,
    depth: tl.constexpr,
):
    column = tl.program_id(0) * tile_columns + tl.arange(0, tile_columns)
    k, is_filter = tl.arange(0, depth), column < num_filters
    begin = tl.program_id(1) * num_summed
    total = tl.zeros((tile_columns, depth), tl.float32)
    for first in range(begin, begin + num_summed, tile_rows):
        row = first + tl.arange(0, tile_rows)
        is_row = row < num_rows
        is_output = is_filter[:, None] & is_row[None, :]
        at = row[None, :] * num_filters + column[:, None]
        values = tl.load(gradient + at, is_output, other=0.0)
        place = tl.load(places + at, is_output, other=-1)
        start = inputs + row[:, None] * row_size + k[None, :]
        is_inside = is_row[:, None] & (k < window_size)[None, :]
        for number in range(num_windows):
            window = tl.load(start + number * dim, is_inside, other=0.0)
            chosen = tl.where(place == number, values, 0.0).to(values.dtype)
            total = tl.dot(chosen, window, total, input_precision="ieee")
    at = (tl.program_id(1) * num_filters + column)[:, None] * window_size + k[None, :]
    tl.store(of_weight + at, total, is_filter[:, None] & (k < window_size)[None, :])


def log_sum_exp(
    inputs: Tensor, weight: Tensor, bias: Tensor, targets: Tensor | None, ids: Tensor | None
) -> Tensor:
    """Compute `log_sum_exp.log_sum_exp`."""
    grid, constants = _grid_of_logits(inputs, weight, targets)
    sizes = len(inputs), *weight.shape
    sums = bias.new_empty(grid[1], len(inputs))  # of each tile of classes
    tensors = inputs.contiguous(), weight.contiguous(), bias, targets, ids, sums
    _launch(_log_sum_exp, grid, inputs, *tensors, *sizes, **constants)
    return sums.logsumexp(0)


def log_sum_exp_backward(
    inputs: Tensor,
    weight: Tensor,
    bias: Tensor,
    targets: Tensor | None,
    ids: Tensor | None,
    sums: Tensor,
    gradient: Tensor,
) -> tuple[Tensor, Tensor]:
    """Compute the gradients of the logits and of the bias."""
    grid, constants = _grid_of_logits(inputs, weight, targets)
    of_logits = inputs.new_empty(len(inputs), len(weight))
    of_bias = bias.new_empty(grid[0], len(weight))
    tensors = inputs.contiguous(), weight.contiguous(), bias, targets, ids, sums, gradient
    sizes = len(inputs), *weight.shape
    outputs = of_logits, of_bias
    _launch(_log_sum_exp_backward, grid, inputs, *tensors, *outputs, *sizes, **constants)
    return of_logits, of_bias.sum(0)


def window_maxima(inputs: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Compute the maxima of a convolution and their places."""
    form = _Form(inputs, weight)
    rows, steps, _ = inputs.shape
    maxima = inputs.new_empty(rows, len(weight))
    places = torch.empty_like(maxima, dtype=torch.int32)
    sizes = *form.sizes, steps - weight.shape[2] + 1
    tensors = inputs, _by_steps(weight), maxima, places
    grid = triton.cdiv(rows, form.tile.rows), triton.cdiv(len(weight), form.tile.columns)
    _launch(_window_maxima, grid, inputs, *tensors, *sizes, **form.constants(weight[0].numel()))
    return maxima, places


def window_maxima_backward(
    gradient: Tensor, places: Tensor, inputs: Tensor, weight: Tensor
) -> tuple[Tensor, Tensor]:
    """Compute the gradients of a convolution's inputs and weight by those of its maxima."""
    form = _Form(inputs, weight)
    (rows, steps, dim), (num_filters, _, width) = inputs.shape, weight.shape
    gradient = gradient.to(inputs.dtype)
    of_inputs = torch.empty_like(inputs, dtype=torch.float32)
    grid = triton.cdiv(rows, form.tile.rows), steps
    tensors = gradient, places, _by_steps(weight), of_inputs
    _launch(_inputs_gradient, grid, inputs, *tensors, *form.sizes, **form.constants(dim))
    grid = triton.cdiv(num_filters, form.tile.columns), triton.cdiv(rows, _ROWS_PER_SUM)
    of_weight = of_inputs.new_empty(grid[1], num_filters, width, dim)
    sizes = *form.sizes, steps - width + 1, _ROWS_PER_SUM
    tensors = gradient, places, inputs, of_weight
    _launch(_weight_gradient, grid, inputs, *tensors, *sizes, **form.constants(width * dim))
    return of_inputs, of_weight.sum(0).transpose(1, 2)


class _Form:
    """Tiles and sizes of a convolution.

    Args:
        inputs: "rows steps dim".
        weight: "filters dim width".
    """

    def __init__(self, inputs: Tensor, weight: Tensor) -> None:
        rows, steps, dim = inputs.shape
        self.tile = _Tile(64, 64, 0, 4, 2)
        self.sizes = rows, len(weight), steps * dim, dim, weight[0].numel()

    def constants(self, depth: int) -> dict[str, int]:
        """Return the constants of a kernel whose tiles are so deep."""
        return _constants(self.tile._replace(depth=max(_FEWEST, triton.next_power_of_2(depth))))


def _by_steps(weight: Tensor) -> Tensor:
    """Return a weight in the order of a window's numbers: "filters width dim"."""
    return weight.transpose(1, 2).contiguous()


def _grid_of_logits(
    inputs: Tensor, weight: Tensor, targets: Tensor | None
) -> tuple[tuple[int, int], dict[str, Any]]:
    tile = _NARROW if inputs.element_size() == 2 else _WIDE
    # Tiles of the same classes are computed at the same time, so the weight is read once.
    grid = triton.cdiv(len(inputs), tile.rows), triton.cdiv(len(weight), tile.columns)
    return grid, {**_constants(tile), "has_targets": targets is not None}


def _constants(tile: _Tile) -> dict[str, int]:
    return {
        "tile_rows": tile.rows,
        "tile_columns": tile.columns,
        "depth": tile.depth,
        "num_warps": tile.num_warps,
        "num_stages": tile.num_stages,
    }


def _launch(
    kernel: Any, grid: tuple[int, int], like: Tensor, *arguments: Any, **constants: Any
) -> None:
    """Launch a kernel on the device of a tensor."""
    if all(grid):
        with torch.cuda.device_of(like):  # type: ignore[no-untyped-call]
            kernel[grid](*arguments, **constants)
