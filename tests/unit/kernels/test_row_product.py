"""A single row gets what it would get among others."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from elmo_framework.kernels import row_product as module
from elmo_framework.kernels.product import prepared
from elmo_framework.kernels.row_product import row_product


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


def refused(row: Tensor) -> Tensor:
    raise AssertionError("the other product was asked for a row")


@pytest.mark.skipif(module._library() is None, reason="needs a C compiler")
@pytest.mark.parametrize(("num_inputs", "chunk"), [(64, 64), (1536, 1024), (1552, 512)])
def test_sums_in_input_order_use_the_compiled_product(num_inputs: int, chunk: int) -> None:
    """In chunks each sum starts from zero, and is added to those before."""
    weight = torch.randn(32, num_inputs)

    def in_order(row: Tensor) -> Tensor:
        total = torch.zeros(32)
        for first in range(0, num_inputs, chunk):
            of_chunk = torch.zeros(32, dtype=torch.float64)
            columns = weight.double().T[first : first + chunk]
            for value, column in zip(row[0, first : first + chunk].double(), columns, strict=True):
                # Rounded once, as fused ones are.
                of_chunk = (of_chunk + value * column).float().double()
            total += of_chunk.float()
        return total[None]

    product = row_product(weight, None, in_order)
    assert product is not in_order
    row = torch.randn(1, num_inputs)
    assert torch.equal(product(row), in_order(row))


def test_other_orders_of_sums_use_the_given_product() -> None:
    def backwards(row: Tensor) -> Tensor:
        return (row.double() @ torch.ones(64, 16).double()).float() + 1

    assert row_product(torch.ones(16, 64), None, backwards) is backwards


def test_without_a_compiler_the_given_product_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_library", lambda *_: None)
    other: Callable[[Tensor], Tensor] = refused
    assert row_product(torch.ones(16, 64), None, other) is other
