"""The stage of `gpu.py` that compares each Triton kernel with PyTorch's operations."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from clock import now
from gpu_setting import report_stage
from torch import Tensor

from elmo_framework.kernels.operators import PLAIN, has_triton

_REPEATS = 10
_TOLERANCES = {torch.bfloat16: 2e-2, torch.float32: 1e-4}
"""Largest difference of a number, over the largest number, by the type of the inputs."""


class _Sizes(NamedTuple):
    """Sizes of an update: of the original config, or small ones."""

    rows: int
    cell: int
    hidden: int
    positions: int
    classes: int
    words: int
    steps: int
    filters: int


_ORIGINAL = _Sizes(128, 4096, 512, 2560, 8192, 1408, 50, 1024)
_SMALL = _Sizes(4, 33, 8, 20, 50, 9, 12, 20)


def compare_kernels(arguments: Namespace) -> bool:
    """Compare the results and the times of all operators with those of their plain functions."""
    device = torch.device(arguments.device)
    sizes = _SMALL if arguments.size == "demo" else _ORIGINAL
    is_compiled = device.type != "cuda" or has_triton()
    results = [
        _compared(arguments, name, tensors, dtype)
        for dtype in _TOLERANCES
        for name, tensors in _cases(sizes, dtype, device)
    ]
    return is_compiled and all(results)


def _compared(arguments: Namespace, name: str, inputs: Sequence[Any], dtype: torch.dtype) -> bool:
    found, seconds = _computed(getattr(torch.ops.elmo_framework, name), inputs)
    expected, plain_seconds = _computed(PLAIN[name], inputs)
    difference = max(
        float((one - other).abs().max() / other.abs().max().clamp(min=1e-6))
        for one, other in zip(found, expected, strict=True)
    )
    report_stage(
        arguments,
        "kernels",
        kernel=name,
        dtype=str(dtype).removeprefix("torch."),
        largest_difference=difference,
        ms=round(1000 * seconds, 4),
        ms_of_pytorch=round(1000 * plain_seconds, 4),
    )
    return difference <= _TOLERANCES[dtype]


def _computed(function: Callable[..., Any], inputs: Sequence[Any]) -> tuple[list[Tensor], float]:
    """Return the numbers that a function returns or changes, and the seconds of a call."""
    copies = [_copy(each) for each in inputs]
    outputs = function(*copies)
    returned = [outputs] if isinstance(outputs, Tensor) else list(outputs or ())
    numbers = [each.double().clone() for each in _tensors([*returned, *copies])]
    device = numbers[0].device
    for _ in range(2):
        function(*copies)
    began = now(device)
    for _ in range(_REPEATS):
        function(*copies)
    return numbers, (now(device) - began) / _REPEATS


def _copy(value: Any) -> Any:
    if isinstance(value, list):
        return [each.clone() for each in value]
    return value.clone() if isinstance(value, Tensor) else value


def _tensors(values: Sequence[Any]) -> Iterator[Tensor]:
    for value in values:
        items = value if isinstance(value, list) else [value]
        yield from (each for each in items if isinstance(each, Tensor) and each.is_floating_point())


def _cases(
    sizes: _Sizes, dtype: torch.dtype, device: torch.device
) -> Iterator[tuple[str, Sequence[Any]]]:
    """Yield the name of each operator, and arguments for it."""
    generator = torch.Generator().manual_seed(0)

    def numbers(*shape: int, dtype: torch.dtype = dtype, scale: float = 1.0) -> Tensor:
        return (scale * torch.randn(shape, generator=generator)).to(device, dtype)

    wide = {"dtype": torch.float32}
    rows, cell = sizes.rows, sizes.cell
    gates, memory = numbers(rows, 4 * cell), numbers(rows, cell, **wide)
    yield "lstm_step", (gates, numbers(rows, 4 * cell), memory, 3.0, True)
    step = gates.sigmoid(), memory, numbers(rows, cell, **wide), numbers(rows, cell)
    yield "lstm_step_backward", (*step, numbers(rows, cell, **wide), 3.0, torch.empty_like(gates))
    hidden = [numbers(rows, sizes.hidden) for _ in range(3)]
    yield "clipped_gradient", (*hidden, 1.0, torch.empty_like(hidden[0]))
    shape = (rows, cell)
    if dtype == torch.float32:  # the semantic role labeler's layers are float32
        sums = numbers(rows, 5 * cell), numbers(rows, 5 * cell)
        others = [numbers(*shape) for _ in range(3)]
        yield "highway_step", (*sums, *others, *(numbers(*shape) for _ in range(3)))
        states = [numbers(*shape) for _ in range(6)]
        of_sums = torch.empty_like(sums[0])
        backward = (sums[0].sigmoid(), *states, of_sums, torch.empty_like(states[0]))
        yield "highway_step_backward", backward
        parameters = [numbers(*shape), numbers(cell)]
        squares = [each.square() for each in parameters]
        rate, scale = torch.full((2,), 0.2, device=device)
        gradients = [torch.rand_like(each) for each in parameters]
        yield "adagrad", (parameters, gradients, squares, rate, scale, 1e-10, 0.1)
    yield from _softmax(sizes, numbers, device)
    yield from _convolution(sizes, numbers)


def _softmax(
    sizes: _Sizes, numbers: Callable[..., Tensor], device: torch.device
) -> Iterator[tuple[str, Sequence[Any]]]:
    positions, classes = sizes.positions, sizes.classes
    inputs, weight = numbers(positions, sizes.hidden), numbers(classes, sizes.hidden, scale=0.05)
    bias = numbers(classes, dtype=torch.float32)
    ids, targets = (torch.arange(number, device=device) for number in (classes, positions))
    softmax = inputs, weight, bias, targets, 3 * ids
    yield "log_sum_exp", softmax
    gradient = numbers(positions, dtype=torch.float32)
    yield "log_sum_exp_backward", (*softmax, PLAIN["log_sum_exp"](*softmax), gradient)


def _convolution(
    sizes: _Sizes, numbers: Callable[..., Tensor]
) -> Iterator[tuple[str, Sequence[Any]]]:
    for width in (1, 7):
        inputs = numbers(sizes.words, sizes.steps, 16)
        weight = numbers(sizes.filters, 16, width, scale=0.1)
        yield "window_maxima", (inputs, weight)
        _, places = PLAIN["window_maxima"](inputs, weight)
        gradient = numbers(sizes.words, sizes.filters)
        yield "window_maxima_backward", (gradient, places, inputs, weight)
