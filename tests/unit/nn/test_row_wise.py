from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from elmo_framework.nn.row_wise import row_wise_sigmoid


@pytest.fixture
def any_threads() -> Iterator[None]:
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("dim", [1, 33, 9, 64])
def test_a_row_has_the_same_bits_among_any_others(dim: int) -> None:
    torch.manual_seed(0)
    rows = 4 * torch.randn(70, dim)
    together = row_wise_sigmoid(rows)
    torch.testing.assert_close(together, torch.sigmoid(rows))
    for number in range(1, len(rows)):
        assert torch.equal(row_wise_sigmoid(rows[:number]), together[:number])


@pytest.mark.parametrize("dim", [97, 2048])
@torch.no_grad()
def test_a_row_has_the_same_bits_with_any_number_of_threads(any_threads, dim: int) -> None:
    torch.manual_seed(0)
    rows = 4 * torch.randn(2, 700, dim)
    torch.set_num_threads(1)
    expected = row_wise_sigmoid(rows)
    assert expected.shape == rows.shape
    for number in (3, 5, 7):
        torch.set_num_threads(number)
        assert torch.equal(row_wise_sigmoid(rows), expected)


@pytest.mark.parametrize("shape", [(0, 5), (3, 0), (2, 0, 40), (5,)])
def test_no_rows_and_no_numbers(shape: tuple[int, ...]) -> None:
    assert row_wise_sigmoid(torch.zeros(shape)).shape == shape


def test_gradients_pass() -> None:
    rows = torch.randn(3, 5, dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(row_wise_sigmoid, rows)
