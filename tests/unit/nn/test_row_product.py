"""A single row gets what it would get among others."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from elmo_framework.nn import row_product as module
from elmo_framework.nn.product import prepared
from elmo_framework.nn.row_product import row_product


@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize(
    ("num_inputs", "num_outputs"),
    [(16, 16), (48, 32), (512, 2048), (1024, 128), (4096, 512), (30, 16), (16, 20), (2064, 64)],
)
def test_a_row_alone_has_the_bits_of_a_row_among_others(
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


@pytest.mark.skipif(module._library() is None, reason="there is no C compiler")
def test_sums_in_the_order_of_the_inputs_are_computed_here() -> None:
    weight = torch.randn(32, 64)

    def in_order(row: Tensor) -> Tensor:
        total = torch.zeros(32, dtype=torch.float64)
        for value, column in zip(row[0].double(), weight.double().T, strict=True):
            total = (total + value * column).float().double()  # rounded once, as fused ones are
        return total.float()[None]

    product = row_product(weight, None, in_order)
    assert product is not in_order
    row = torch.randn(1, 64)
    assert torch.equal(product(row), in_order(row))


def test_another_order_of_sums_is_left_to_the_other_product() -> None:
    def backwards(row: Tensor) -> Tensor:
        return (row.double() @ torch.ones(64, 16).double()).float() + 1

    assert row_product(torch.ones(16, 64), None, backwards) is backwards


def test_without_a_compiler_the_other_product_remains(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_library", lambda: None)
    other: Callable[[Tensor], Tensor] = refused
    assert row_product(torch.ones(16, 64), None, other) is other
