"""Maxima of a convolution over its positions, whose outputs a GPU never writes to memory."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import c_long, c_void_p
from pathlib import Path
from typing import Any, Final

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from elmo_framework.kernels.backend import autocast_dtype, uses_cpu_code
from elmo_framework.kernels.blocked_product import TrainingPrecision, blocked, is_fast
from elmo_framework.kernels.compiler import library, pointers
from elmo_framework.kernels.operators import operator
from elmo_framework.kernels.product import product, training_product

_library = library(
    Path(__file__).with_name("window_gradients.c"),
    fast_math=False,
    functions={"window_gradients": [*[c_long] * 5, *[c_void_p] * 4, c_long, *[c_void_p] * 2]},
)
_WINDOWS_AT_ONCE, _WINDOWS_AT_ONCE_OF_ACCELERATORS = 4096, 1 << 18
"""Windows per product without gradients, so that the outputs fit into the CPU's cache; without
Triton, into the memory of a GPU."""

_ROWS_OF_TILES, _SHARED_MEMORY = 64 + 64, 192 * 1024
"""Filters and windows of a tile on a GPU, each with all numbers of a window; bytes, of 227 KiB that
an H100 has."""

_FLOAT32: Final = "float32"
_BFLOAT16: Final = "bfloat16"
_STEP_OF_WINDOWS = 128
"""Products on the CPU have a multiple of so many windows."""


def window_maxima(
    inputs: Float[Tensor, "rows steps dim"], weight: Float[Tensor, "filters dim width"]
) -> Float[Tensor, "rows filters"]:
    """Return max_t sum_{d, j} weight_{f, d, j} inputs_{t + j, d} for each row and filter f.

    The backward pass visits only the windows of the maxima. On the CPU the convolution is a
    product of all windows with the weight, which is faster than PyTorch's convolution.
    """
    narrow, precision = autocast_dtype(inputs), _FLOAT32
    has_gradient = torch.is_grad_enabled() and (inputs.requires_grad or weight.requires_grad)
    if narrow == torch.bfloat16 and has_gradient and is_fast(inputs, _BFLOAT16):
        narrow, precision = None, _BFLOAT16
    if not len(inputs) or (narrow and uses_cpu_code(inputs)):
        return functional.conv1d(inputs.transpose(1, 2), weight).amax(dim=2)
    if narrow:
        inputs, weight = inputs.to(narrow), weight.to(narrow)
    if has_gradient:
        maxima: Tensor = _WindowMaxima.apply(  # type: ignore[no-untyped-call]
            inputs, weight, precision
        )
        return maxima
    if not uses_cpu_code(inputs):
        maxima, _ = _maxima(inputs.contiguous(), weight)
        return maxima
    num_windows = inputs.shape[1] - weight.shape[2] + 1
    pieces = torch.split(inputs, max(1, _WINDOWS_AT_ONCE // num_windows))
    # Chosen by the weight alone, so that the bits of a row do not depend on the number of rows.
    packed = blocked(weight.flatten(1), _FLOAT32)
    multiply = None if packed is None else packed.product
    return torch.cat([_convolved(piece, weight, multiply).amax(dim=1) for piece in pieces])


class _WindowMaxima(torch.autograd.Function):
    """Saves the positions of the maxima: no other window has a gradient."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, precision: TrainingPrecision) -> Tensor:
        if uses_cpu_code(inputs):
            packed = blocked(weight.flatten(1), precision)
            outputs = _convolved(inputs, weight, None if packed is None else packed.product)
            maxima = outputs.amax(dim=1)
            # Several times faster than argmax; which of several equal maxima does not matter.
            numbers = torch.arange(outputs.shape[1], dtype=outputs.dtype)[:, None]
            places = outputs.eq_(maxima[:, None]).mul_(numbers).amax(dim=1).long()
        else:
            inputs = inputs.contiguous()
            maxima, places = _maxima(inputs, weight)
        ctx.save_for_backward(inputs, weight, places)
        return maxima

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        inputs, weight, places = ctx.saved_tensors
        of_inputs, of_weight, _ = ctx.needs_input_grad
        if not uses_cpu_code(inputs):
            gradients = _gradients(gradient.contiguous(), places, inputs, weight)
            return *(each.to(inputs.dtype) for each in gradients), None
        gradients = _compiled_gradients(gradient, places, inputs, weight)
        if gradients is not None:
            return *gradients, None
        return (
            _inputs_gradient(gradient, places, inputs, weight) if of_inputs else None,
            _weight_gradient(gradient, places, inputs, weight) if of_weight else None,
            None,
        )


def _convolved(
    inputs: Tensor, weight: Tensor, multiply: Callable[[Tensor], Tensor] | None = None
) -> Tensor:
    windows = _windows(inputs, weight.shape[2])
    rows = windows.flatten(0, 1)
    if multiply is None:
        # oneDNN compiles code for each number of rows, which takes longer than a few more rows.
        padded = functional.pad(rows, (0, 0, 0, -len(rows) % _STEP_OF_WINDOWS))
        outputs = product(padded, weight.flatten(1))[: len(rows)]
    else:
        outputs = multiply(rows)
    return outputs.view(*windows.shape[:2], len(weight))


def _windows(inputs: Tensor, width: int) -> Tensor:
    return inputs.unfold(1, width, 1).flatten(2)  # rows positions dim*width


def _inputs_gradient(gradient: Tensor, places: Tensor, inputs: Tensor, weight: Tensor) -> Tensor:
    rows, steps, dim = inputs.shape
    width = weight.shape[2]
    positions = steps - width + 1
    spread = gradient.new_zeros(rows, positions, len(weight))
    spread.scatter_(1, places[:, None].long(), gradient[:, None])
    of_windows = training_product(spread.flatten(0, 1), weight.flatten(1).T)
    of_windows = of_windows.view(rows, positions, dim, width)
    of_inputs = torch.zeros_like(inputs)
    for offset in range(width):
        of_inputs[:, offset : offset + positions] += of_windows[..., offset]
    return of_inputs


def _weight_gradient(gradient: Tensor, places: Tensor, inputs: Tensor, weight: Tensor) -> Tensor:
    windows = _windows(inputs, weight.shape[2])
    firsts = windows.shape[1] * torch.arange(len(inputs), device=inputs.device)[:, None]
    summed = functional.embedding_bag(
        (firsts + places).T.contiguous(),
        windows.flatten(0, 1),
        per_sample_weights=gradient.T.contiguous(),
        mode="sum",
    )
    return summed.view_as(weight)


def _compiled_gradients(
    gradient: Tensor, places: Tensor, inputs: Tensor, weight: Tensor
) -> tuple[Tensor, Tensor] | None:
    """Return the gradients of inputs and weight; None if no compiled code supports them."""
    # The numbers of a window are next to each other in the inputs, one step after the other.
    turned = weight.detach().transpose(1, 2).contiguous()
    gradient, inputs, places = gradient.contiguous(), inputs.contiguous(), places.long()
    functions = _library(gradient, inputs, turned)
    if functions is None:
        return None
    of_inputs, of_turned = torch.zeros_like(inputs), torch.zeros_like(turned)
    sizes = *inputs.shape, len(weight), weight.shape[2]
    tensors = pointers(gradient, places, inputs, turned)
    functions.window_gradients(
        *sizes, *tensors, torch.get_num_threads(), *pointers(of_inputs, of_turned)
    )
    return of_inputs, of_turned.transpose(1, 2).contiguous()


def _plain_maxima(inputs: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    num_windows = inputs.shape[1] - weight.shape[2] + 1
    pieces = torch.split(inputs, max(1, _WINDOWS_AT_ONCE_OF_ACCELERATORS // num_windows))
    found = [_convolved(piece, weight).max(dim=1) for piece in pieces]
    maxima, places = (torch.cat(parts) for parts in zip(*found, strict=True))
    return maxima, places.int()


def _plain_gradients(
    gradient: Tensor, places: Tensor, inputs: Tensor, weight: Tensor
) -> tuple[Tensor, Tensor]:
    of_inputs = _inputs_gradient(gradient, places, inputs, weight)
    return of_inputs, _weight_gradient(gradient, places, inputs, weight)


def has_kernel(weight: Tensor) -> bool:
    """Return whether a tile of filters and one of windows fit into the shared memory of a GPU."""
    depth = 1 << (weight[0].numel() - 1).bit_length()
    return _ROWS_OF_TILES * depth * weight.element_size() <= _SHARED_MEMORY


_KERNELS = "triton_tiles"
_maxima = operator(
    "window_maxima(Tensor inputs, Tensor weight) -> (Tensor, Tensor)",
    _plain_maxima,
    _KERNELS,
    has_kernel=lambda inputs, weight: has_kernel(weight),
)
_gradients = operator(
    "window_maxima_backward(Tensor gradient, Tensor places, Tensor inputs, Tensor weight)"
    " -> (Tensor, Tensor)",
    _plain_gradients,
    _KERNELS,
    has_kernel=lambda gradient, places, inputs, weight: has_kernel(weight),
)
