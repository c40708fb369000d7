"""Products in training equal those of rounded numbers in float64."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from elmo_framework.kernels import blocked_product as module
from elmo_framework.kernels.backend import accelerator_code
from elmo_framework.kernels.blocked_product import TrainingPrecision, blocked, blocked_product
from elmo_framework.kernels.product import (
    linear,
    prepared_backward,
    prepared_for_update,
    weight_gradient,
)

needs_kernel = pytest.mark.skipif(
    "float32" not in module._fast_precisions(), reason="needs a C compiler and AVX-512"
)
PRECISIONS = pytest.mark.parametrize("precision", ["float32", "bfloat16"])
# Rows, inputs and outputs: fewer than a block, a whole one, and parts of each width; one and
# several partial sums; the threads share outputs or rows.
SIZES = [(1, 64, 256), (9, 129, 130), (6, 1600, 64), (300, 257, 65), (200, 1537, 70), (2, 1, 64)]
SIZES += [(7, 30, 44), (7, 30, 119)]
ERRORS = {"float32": 1e-5, "bfloat16": 2e-2}


@pytest.fixture
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the compiled product for every size and precision that it supports."""
    monkeypatch.setattr(module, "_SMALLEST", 0)
    monkeypatch.setattr(module, "_FEWEST_ROWS", 0)
    monkeypatch.setattr(module, "_NUMBERS_PER_THREAD", 1)
    monkeypatch.setattr(module, "_fast_precisions", lambda: ("float32", "bfloat16"))


def random(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


def rounded(values: Tensor, precision: TrainingPrecision) -> Tensor:
    return values.double() if precision == "float32" else values.bfloat16().double()


def transposed(matrix: Tensor) -> Tensor:
    """Return the same matrix with its columns next to each other in memory."""
    return matrix.T.contiguous().T


@needs_kernel
@pytest.mark.usefixtures("any_size")
@PRECISIONS
@pytest.mark.parametrize("num_threads", [1, 3])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_products_of_any_layout_equal_those_of_float64(
    sizes: tuple[int, int, int], num_threads: int, precision: TrainingPrecision
) -> None:
    num_rows, num_inputs, num_outputs = sizes
    rows, matrix = random(num_rows, num_inputs), random(num_outputs, num_inputs)
    bias = random(num_outputs)
    expected = rounded(rows, precision) @ rounded(matrix, precision).T + bias
    before = torch.get_num_threads()
    torch.set_num_threads(num_threads)
    try:
        for each in (rows, transposed(rows), rows.repeat(1, 2)[:, :num_inputs]):
            for packed in (blocked(matrix, precision), blocked(transposed(matrix), precision)):
                assert packed is not None
                product = packed.product(each, bias)
                torch.testing.assert_close(product.double(), expected, rtol=1e-4, atol=2e-4)
    finally:
        torch.set_num_threads(before)


@needs_kernel
@pytest.mark.usefixtures("any_size")
@PRECISIONS
def test_a_row_does_not_depend_on_others(precision: TrainingPrecision) -> None:
    rows = random(13, 1000)
    packed = blocked(random(66, 1000), precision)
    assert packed is not None
    assert torch.equal(packed.product(rows), torch.cat([packed.product(row[None]) for row in rows]))


@needs_kernel
@pytest.mark.usefixtures("any_size")
def test_result_is_written_into_a_tensor() -> None:
    rows, matrix, out = random(3, 40), random(70, 40), torch.full((5, 70), 7.0)
    packed = blocked(matrix, "float32")
    assert packed is not None
    packed.product(rows, out=out[:3])
    assert torch.equal(out[:3], packed.product(rows))
    assert (out[3:] == 7).all()


@needs_kernel
@pytest.mark.usefixtures("any_size")
@PRECISIONS
def test_numbers_that_are_none_are_passed_on(precision: TrainingPrecision) -> None:
    rows = random(8, 33)
    rows[1, 32] = torch.nan
    outputs = blocked_product(rows, random(64, 33), None, precision)
    assert outputs is not None
    assert outputs.isnan().all(dim=1).tolist() == [False, True] + [False] * 6
    assert outputs[2:].isfinite().all()


@needs_kernel
@pytest.mark.usefixtures("any_size")
@PRECISIONS
@pytest.mark.parametrize("shape", [(9, 32), (9, 34), (33,)])
def test_rows_of_another_width_are_refused(
    precision: TrainingPrecision, shape: tuple[int, ...]
) -> None:
    matrix = blocked(random(64, 33), precision)
    assert matrix is not None
    with pytest.raises(ValueError, match="rows has the shape"):
        matrix.product(random(*shape))


@needs_kernel
@pytest.mark.usefixtures("any_size")
def test_memory_of_an_earlier_product_does_not_matter() -> None:
    """An odd number of inputs is filled up to a pair, next to numbers of the product before."""
    packed = [blocked(random(64, num_inputs), "bfloat16") for num_inputs in (130, 129)]
    rows = [torch.full((9, 130), torch.nan), random(9, 129)]
    out = torch.empty(9, 64)
    for each, matrix in zip(rows, packed, strict=True):
        assert matrix is not None
        matrix.product(each, out=out)
    assert out.isfinite().all()


@needs_kernel
@PRECISIONS
def test_small_matrices_doubles_and_accelerators_are_left_to_others(
    precision: TrainingPrecision,
) -> None:
    assert blocked(random(16, 16), precision) is None
    assert blocked(random(256, 256).double(), precision) is None
    with accelerator_code():
        assert blocked(random(256, 256), precision) is None
    assert blocked_product(random(2, 256), random(256, 256), None, precision) is None


@needs_kernel
def test_wrong_rows_are_refused() -> None:
    packed = blocked(random(256, 256), "float32")
    assert packed is not None
    with pytest.raises(TypeError, match="float32"):
        packed.product(random(8, 256).double())


@PRECISIONS
@pytest.mark.parametrize("is_fast", [True, False])
def test_gradients_equal_those_of_float64(
    precision: TrainingPrecision, is_fast: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the compiled product, and without: on other CPUs."""
    if not is_fast:
        monkeypatch.setattr(module, "_fast_precisions", lambda: ())
    leaves = [t.requires_grad_() for t in (random(40, 160), random(192, 160), random(192))]
    of_outputs = random(40, 192)
    with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
        outputs = linear(*leaves)
    found = torch.autograd.grad(outputs, leaves, of_outputs.to(outputs.dtype))
    exact = [t.detach().double().requires_grad_() for t in leaves]
    expected = torch.nn.functional.linear(*exact)
    gradients = torch.autograd.grad(expected, exact, of_outputs.double())
    for one, other in zip((outputs, *found), (expected, *gradients), strict=True):
        assert ((one - other).norm() / other.norm()).item() < ERRORS[precision]


@PRECISIONS
@pytest.mark.parametrize("is_fast", [True, False])
def test_products_of_an_update_equal_those_of_float64(
    precision: TrainingPrecision, is_fast: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_fast:
        monkeypatch.setattr(module, "_fast_precisions", lambda: ())
    rows, weight, gradient = random(9, 160), random(192, 160), random(9, 192)
    out = torch.empty(9, 160)
    backward = prepared_backward(weight, precision)
    exact = [t.double() for t in (rows, weight, gradient)]
    for found, expected in (
        (prepared_for_update(weight, precision)(rows), exact[0] @ exact[1].T),
        (backward(gradient, None), exact[2] @ exact[1]),
        (backward(gradient, out), exact[2] @ exact[1]),
        (out, exact[2] @ exact[1]),
        (weight_gradient(gradient, rows, precision), exact[2].T @ exact[0]),
    ):
        assert found.dtype == torch.float32
        assert ((found - expected).norm() / expected.norm()).item() < ERRORS[precision]


@needs_kernel
@pytest.mark.skipif("bfloat16" not in module._fast_precisions(), reason="needs AVX512_BF16")
def test_sums_are_float32_in_mixed_precision() -> None:
    """PyTorch rounds the outputs of each product to bfloat16."""
    rows, weight = random(40, 160), random(192, 160).requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        outputs = linear(rows, weight)
    expected = rows.bfloat16().double() @ weight.bfloat16().double().T
    torch.testing.assert_close(outputs.double(), expected, rtol=1e-4, atol=1e-4)
