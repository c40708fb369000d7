from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from elmo_framework.nn.masking import (
    VariationalDropout,
    masked_max,
    masked_mean,
    masked_min,
    masked_sum,
    moved_mask,
)
from tests.simulated_device import DEVICE, simulated_device

LENGTHS = (3, 1, 0)
MASK = torch.arange(4) < torch.tensor(LENGTHS)[:, None]
EACH = pytest.mark.parametrize(
    ("pool", "reference"),
    [
        (masked_sum, lambda row: row.sum(dim=0)),
        (masked_mean, lambda row: row.mean(dim=0)),
        (masked_max, lambda row: row.max(dim=0).values),
        (masked_min, lambda row: row.min(dim=0).values),
    ],
)
Pool = Callable[[Tensor, Tensor], Tensor]


@EACH
def test_padding_is_ignored(pool: Pool, reference: Callable[[Tensor], Tensor]):
    inputs = torch.randn(3, 4, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    inputs[~MASK] = 1000.0

    found = pool(inputs, MASK)

    for row, length in enumerate(LENGTHS[:2]):
        torch.testing.assert_close(found[row], reference(inputs[row, :length]), rtol=0, atol=1e-15)
    assert found[2].tolist() == [0.0, 0.0]


@EACH
def test_gradients_are_finite_and_reach_no_padding(pool: Pool, reference: object):
    inputs = torch.randn(3, 4, 2, generator=torch.Generator().manual_seed(1)).requires_grad_()

    pool(inputs, MASK).sum().backward()

    assert torch.isfinite(inputs.grad).all()
    assert not inputs.grad[~MASK].any()
    assert inputs.grad[:2].flatten(start_dim=1).any(dim=1).all()


def test_all_words_of_a_sequence_have_the_same_mask() -> None:
    dropped = VariationalDropout(0.5)(torch.ones(8, 5, 64))
    assert torch.equal(dropped, dropped[:, :1].expand_as(dropped))


def test_sequences_lose_different_values() -> None:
    torch.manual_seed(0)
    dropped = VariationalDropout(0.5)(torch.ones(2, 3, 64))
    assert not torch.equal(dropped[0], dropped[1])


def test_remaining_values_are_scaled_to_keep_the_mean() -> None:
    torch.manual_seed(0)
    dropped = VariationalDropout(0.2)(torch.ones(100, 2, 100))
    assert torch.equal(dropped.unique(), torch.tensor([0, 1.25]))
    assert dropped.mean().item() == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize(("p", "is_training"), [(0.5, False), (0.0, True)])
def test_no_dropout_in_evaluation_or_with_rate_zero(p: float, is_training: bool) -> None:
    inputs = torch.randn(2, 3, 4)
    assert torch.equal(VariationalDropout(p).train(is_training)(inputs), inputs)


def test_gradients_reach_only_undropped_values() -> None:
    inputs = torch.ones(2, 3, 16, requires_grad=True)
    dropped = VariationalDropout(0.5)(inputs)
    dropped.sum().backward()
    assert inputs.grad is not None
    assert torch.equal(inputs.grad, dropped.detach())


def test_a_share_of_all_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^dropout rate is 1\.0; it must be"):
        VariationalDropout(1.0)


@pytest.mark.parametrize(
    ("mask", "num_copied"), [(MASK, [12]), (MASK[:0], []), (torch.ones_like(MASK), [])]
)
def test_a_full_mask_is_not_copied_to_a_device(mask: Tensor, num_copied: list[int]) -> None:
    with simulated_device() as calls:
        moved = moved_mask(mask, DEVICE)
        assert (calls.copies, calls.waits) == (num_copied, [])
        assert moved_mask(moved, DEVICE) is moved
        assert torch.equal(moved.cpu(), mask)
    assert moved_mask(mask, torch.device("cpu")) is mask
