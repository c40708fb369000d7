"""Products by oneDNN or PyTorch, with their gradients, equal those of float64."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from elmo_framework.kernels.product import (
    linear,
    prepared,
    product,
    rounded_up,
    weight_gradient,
)

ROWS = pytest.mark.parametrize("num_rows", [0, 1, 2, 17, 130, 256])
SIZES = pytest.mark.parametrize(("num_inputs", "num_outputs"), [(32, 48), (48, 32), (5, 3)])


def random(*shape: int) -> Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(shape, generator=generator)


@ROWS
@SIZES
@pytest.mark.parametrize("has_bias", [True, False])
def test_values_and_gradients_equal_those_of_float64(
    num_rows: int, num_inputs: int, num_outputs: int, has_bias: bool
) -> None:
    given = [random(num_rows, num_inputs), random(num_outputs, num_inputs)]
    given += [random(num_outputs)] if has_bias else []
    leaves = [tensor.requires_grad_() for tensor in given]
    exact = [tensor.detach().double().requires_grad_() for tensor in given]
    of_outputs = random(num_rows, num_outputs)

    outputs, expected = linear(*leaves), functional.linear(*exact)
    found = torch.autograd.grad(outputs, leaves, of_outputs)
    gradients = torch.autograd.grad(expected, exact, of_outputs.double())

    close = {"check_dtype": False, "atol": 1e-5, "rtol": 1e-4}
    torch.testing.assert_close(outputs, expected, **close)
    torch.testing.assert_close(found, gradients, **close)


@ROWS
@SIZES
def test_weight_gradient_has_the_layout_of_the_weight(
    num_rows: int, num_inputs: int, num_outputs: int
) -> None:
    """Optimizers that take many tensors at once are slow where the two differ."""
    gradient, rows = random(num_rows, num_outputs), random(num_rows, num_inputs)
    found = weight_gradient(gradient, rows)
    assert found.is_contiguous()
    expected = gradient.double().T @ rows.double()
    torch.testing.assert_close(found, expected, check_dtype=False, atol=1e-5, rtol=1e-4)


@ROWS
def test_weights_may_be_transposed_or_slices(num_rows: int) -> None:
    rows, whole = random(num_rows, 16), random(40, 32)
    for weight in (whole[:16].T, whole[:, :16], whole[::2, ::2]):
        expected = rows.double() @ weight.double().T
        found = product(rows, weight)
        torch.testing.assert_close(found, expected, check_dtype=False, atol=1e-5, rtol=1e-4)


def test_linear_takes_any_number_of_dimensions() -> None:
    inputs, weight = random(2, 3, 4, 8), random(5, 8)
    assert torch.allclose(linear(inputs, weight), inputs @ weight.T, atol=1e-5)


@pytest.mark.parametrize(("precision", "error"), [("bfloat16", 0.01), ("int8", 0.03)])
def test_low_precision_adds_the_bias_in_full(precision: str, error: float) -> None:
    rows, weight, bias = random(9, 64), random(32, 64), 100 * random(32)
    found = prepared(weight, bias, precision)(rows) - bias
    expected = rows @ weight.T
    assert found.dtype == torch.float32
    assert ((found - expected).norm() / expected.norm()).item() < error
    assert not torch.equal(found, prepared(weight)(rows))


def test_few_numbers_of_rows_occur() -> None:
    """Those whose four highest bits alone are set, and multiples of 128."""
    for number in {rounded_up(number) for number in range(1, 1000)}:
        assert number % 128 == 0 or number % (1 << max(0, number.bit_length() - 4)) == 0
    for number in range(1, 1000):
        assert 0 <= rounded_up(number) - number <= min(127, number // 8)
        assert rounded_up(rounded_up(number)) == rounded_up(number)


@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize(
    ("num_inputs", "num_outputs"),
    [(16, 16), (48, 32), (512, 2048), (1024, 128), (4096, 512), (30, 16), (16, 20), (2064, 64)],
)
def test_single_row_is_bit_identical_to_a_row_among_others(
    num_inputs: int, num_outputs: int, has_bias: bool
) -> None:
    generator = torch.Generator().manual_seed(num_inputs)
    weight = torch.randn(num_outputs, num_inputs, generator=generator)
    bias = torch.randn(num_outputs, generator=generator) if has_bias else None
    rows = torch.randn(5, num_inputs, generator=generator)
    product = prepared(weight, bias)
    together = product(rows)
    exact = rows.double() @ weight.double().T + (0 if bias is None else bias.double())
    torch.testing.assert_close(together.double(), exact, rtol=1e-4, atol=1e-4)
    for row, expected in zip(rows, together, strict=True):
        assert torch.equal(product(row[None])[0], expected)
