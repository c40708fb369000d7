"""Dropout with one mask a sequence."""

from __future__ import annotations

import pytest
import torch

from elmo_framework.nn.variational_dropout import VariationalDropout


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


def test_gradients_reach_what_is_kept() -> None:
    inputs = torch.ones(2, 3, 16, requires_grad=True)
    dropped = VariationalDropout(0.5)(inputs)
    dropped.sum().backward()
    assert inputs.grad is not None
    assert torch.equal(inputs.grad, dropped.detach())


def test_a_share_of_all_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^dropout rate is 1\.0; it must be"):
        VariationalDropout(1.0)
