"""Products with packed weights equal those of rounded numbers in float64."""

import pytest
import torch
from torch import Tensor

from elmo_framework.kernels import packed_product as module
from elmo_framework.kernels import product
from elmo_framework.kernels.backend import accelerator_code
from elmo_framework.kernels.packed_product import Precision, pack
from elmo_framework.kernels.product import prepared

needs_compiler = pytest.mark.skipif(module._library() is None, reason="needs a C compiler")
PRECISIONS = pytest.mark.parametrize("precision", ["float32", "bfloat16", "int8"])


def random(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


def rounded(values: Tensor, precision: Precision) -> Tensor:
    if precision == "bfloat16":
        return values.bfloat16().double()
    if precision == "int8":
        scales = values.abs().amax(dim=1, keepdim=True).clamp(min=1e-30) / 127
        return (values / scales).round().double() * scales.double()
    return values.double()


@needs_compiler
@PRECISIONS
@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("num_rows", [0, 1, 2, 3, 4, 5, 6, 13])
def test_products_equal_those_of_rounded_numbers(
    num_rows: int, has_bias: bool, precision: Precision
) -> None:
    rows, weight, bias = random(num_rows, 100), random(192, 100), 100 * random(192)
    packed = pack(weight, bias if has_bias else None, precision)
    assert packed is not None
    expected = rounded(rows, precision) @ rounded(weight, precision).T + has_bias * bias
    torch.testing.assert_close(packed.product(rows).double(), expected, rtol=1e-5, atol=1e-4)


@needs_compiler
@PRECISIONS
def test_a_row_does_not_depend_on_others(precision: Precision) -> None:
    rows = random(13, 64) * torch.logspace(-3, 3, 13)[:, None]
    packed = pack(random(128, 64), None, precision)
    assert packed is not None
    alone = [packed.product(row[None]) for row in rows]
    assert torch.equal(packed.product(rows), torch.cat(alone))


@needs_compiler
@PRECISIONS
@pytest.mark.parametrize("num_rows", [1, 2, 200])
def test_long_rows_are_summed_in_parts(num_rows: int, precision: Precision) -> None:
    rows, weight, bias = random(num_rows, 7000), random(64, 7000), 100 * random(64)
    packed = pack(weight, bias, precision)
    assert packed is not None
    found = packed.product(rows)
    expected = rounded(rows, precision) @ rounded(weight, precision).T + bias
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-3)
    assert torch.equal(packed.product(rows[-1:]), found[-1:])


@needs_compiler
@PRECISIONS
@pytest.mark.parametrize("shape", [(9, 40), (9, 65), (64,)])
def test_rows_of_another_width_are_refused(precision: Precision, shape: tuple[int, ...]) -> None:
    packed = pack(random(64, 64), None, precision)
    assert packed is not None
    with pytest.raises(ValueError, match="rows has the shape"):
        packed.product(random(*shape))


@needs_compiler
@PRECISIONS
def test_numbers_that_are_none_are_passed_on(precision: Precision) -> None:
    rows = random(2, 64)
    rows[0, 3] = torch.nan
    packed = pack(random(64, 64), None, precision)
    assert packed is not None
    outputs = packed.product(rows)
    assert outputs[0].isnan().all()
    assert outputs[1].isfinite().all()


@needs_compiler
@PRECISIONS
def test_zeros_stay_zero(precision: Precision) -> None:
    packed = pack(torch.zeros(64, 64), None, precision)
    assert packed is not None
    assert not packed.product(torch.zeros(1, 64)).any()


@pytest.mark.parametrize("shape", [(20, 64), (64, 30)], ids=["outputs", "inputs"])
def test_other_sizes_are_not_packed(shape: tuple[int, int]) -> None:
    assert pack(random(*shape), None, "float32") is None


@PRECISIONS
def test_the_plain_product_is_the_same_without_a_compiler(
    precision: Precision, monkeypatch: pytest.MonkeyPatch
) -> None:
    weight, bias, rows = random(64, 64), random(64), random(5, 64)
    expected = prepared(weight, bias, precision)(rows)
    monkeypatch.setattr(product, "pack", lambda *_: None)
    plain = prepared(weight, bias, precision)(rows)
    error = 2e-2 if precision == "bfloat16" else 1e-4  # oneDNN rounds the sums to bfloat16 too
    torch.testing.assert_close(plain, expected, rtol=error, atol=error)


def test_int8_is_the_same_without_vnni(monkeypatch: pytest.MonkeyPatch) -> None:
    """There oneDNN adds pairs of products in 16 bits, too few for the largest ones."""
    weight, bias, rows = random(64, 64).abs(), random(64), random(5, 64).abs()
    expected = prepared(weight, bias, "int8")(rows)
    monkeypatch.setattr(product, "pack", lambda *_: None)
    monkeypatch.setattr(product, "_has_exact_int8", lambda: False)
    torch.testing.assert_close(prepared(weight, bias, "int8")(rows), expected, rtol=1e-5, atol=1e-4)


@needs_compiler
def test_wrong_tensors_are_refused() -> None:
    packed = pack(random(64, 64), None, "float32")
    assert packed is not None
    with pytest.raises(TypeError, match="float32"):
        packed.product(random(2, 64).double())
    with accelerator_code(), pytest.raises(TypeError, match="on the CPU"):
        packed.product(random(2, 64))
