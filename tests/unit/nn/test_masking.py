from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from elmo_framework.nn.masking import masked_max, masked_mean, masked_min, masked_sum

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
def test_only_what_is_not_padding_counts(pool: Pool, reference: Callable[[Tensor], Tensor]):
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
