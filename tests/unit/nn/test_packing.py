import pytest
import torch

from elmo_framework.nn.packing import Packing, reversed_rows

MASK = torch.arange(5) < torch.tensor([2, 0, 5, 2])[:, None]
ROWS = torch.arange(4 * 5 * 2, dtype=torch.double).view(4, 5, 2) + 1


def test_packing_orders_words_by_step_longest_row_first() -> None:
    packing = Packing.of(MASK)
    assert packing.order.tolist() == [2, 0, 3, 1]
    assert packing.sizes == [3, 3, 1, 1, 1]
    steps = [(2, 0), (0, 0), (3, 0), (2, 1), (0, 1), (3, 1), (2, 2), (2, 3), (2, 4)]
    assert torch.equal(packing.pack(ROWS), torch.stack([ROWS[row, step] for row, step in steps]))


def test_unpacking_restores_rows_with_zeros_at_padding() -> None:
    packing = Packing.of(MASK)
    assert torch.equal(packing.unpack(packing.pack(ROWS)), ROWS * MASK[:, :, None])


def test_restoring_undoes_sorting() -> None:
    packing, rows = Packing.of(MASK), torch.randn(4, 3)
    assert torch.equal(packing.restore(packing.sort(rows)), rows)


def test_rows_of_another_mask_are_refused() -> None:
    for mask in (MASK, torch.ones_like(MASK)):
        for rows in (ROWS[:3], ROWS[:, :4]):
            with pytest.raises(ValueError, match=r"the mask has \(4, 5\)"):
                Packing.of(mask).pack(rows)


def test_rows_without_words_are_packed_to_nothing() -> None:
    packing = Packing.of(torch.zeros(2, 3, dtype=torch.bool))
    assert packing.sizes == []
    assert torch.equal(packing.unpack(packing.pack(torch.ones(2, 3, 4))), torch.zeros(2, 3, 4))


def test_full_rows_are_packed_without_an_index() -> None:
    mask = torch.ones(4, 5, dtype=torch.bool)
    packing = Packing.of(mask)
    assert packing.is_full
    assert packing.sizes == [4] * 5
    assert torch.equal(packing.pack(ROWS), ROWS.transpose(0, 1).reshape(20, 2))
    assert torch.equal(packing.pack(ROWS), ROWS.flatten(0, 1)[packing.positions])
    assert torch.equal(packing.unpack(packing.pack(ROWS)), ROWS)
    state = torch.randn(4, 3)
    assert packing.sort(state) is packing.restore(state) is state
    assert packing.to(torch.device("meta")) is packing


def test_a_row_is_reversed_within_its_own_length() -> None:
    turned = reversed_rows(ROWS, MASK)
    assert torch.equal(turned[0], ROWS[0, [1, 0, 2, 3, 4]])
    assert torch.equal(turned[1], ROWS[1])
    assert torch.equal(turned[2], ROWS[2].flip(0))


def test_reversing_twice_gives_the_rows_back() -> None:
    assert torch.equal(reversed_rows(reversed_rows(ROWS, MASK), MASK), ROWS)


def test_gradients_reach_the_packed_words() -> None:
    rows = ROWS.clone().requires_grad_()
    packing = Packing.of(MASK)
    weights = torch.randn(9, 2, dtype=torch.double)
    (packing.pack(rows) * weights).sum().backward()
    assert torch.equal(rows.grad, packing.unpack(weights))


def test_a_packing_can_be_moved_to_a_device() -> None:
    packing = Packing.of(MASK).to(torch.device("meta"))
    assert packing.order.is_meta
    assert packing.positions.is_meta
    assert packing.sizes == [3, 3, 1, 1, 1]
