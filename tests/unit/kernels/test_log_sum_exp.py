"""Normalizers of softmaxes, by the plain code for accelerators, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from elmo_framework.kernels import log_sum_exp as module
from elmo_framework.kernels.log_sum_exp import log_sum_exp

IDS = torch.tensor([7, 2, 9, 4])
TARGETS = torch.tensor([2, 5, 9, 2, 7, 8])
"""Some are among the ids."""


def tensors() -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    shapes = (6, 3), (4, 3), (4,)
    inputs, weight, bias = (torch.randn(each, generator=generator).double() for each in shapes)
    return inputs.requires_grad_(), weight.requires_grad_(), bias.requires_grad_()


def expected(*arrays: Tensor, has_targets: bool) -> np.ndarray:
    inputs, weight, bias = (each.detach().numpy() for each in arrays)
    exponentials = np.exp(inputs @ weight.T + bias)
    if has_targets:
        exponentials[TARGETS.numpy()[:, None] == IDS.numpy()] = 0
    result: np.ndarray = np.log(exponentials.sum(1))
    return result


@pytest.mark.parametrize("has_targets", [True, False])
@pytest.mark.parametrize("size", [1, 9, 1000])
def test_targets_do_not_count(
    has_targets: bool, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MAX_LOGITS", size)
    of_targets = (TARGETS, IDS) if has_targets else ()
    found = log_sum_exp(*tensors(), *of_targets).detach().numpy()
    np.testing.assert_allclose(found, expected(*tensors(), has_targets=has_targets), rtol=1e-12)
    with torch.no_grad():
        np.testing.assert_array_equal(log_sum_exp(*tensors(), *of_targets), found)


@pytest.mark.parametrize("has_targets", [True, False])
def test_gradients_are_the_numerical_ones(has_targets: bool) -> None:
    of_targets = (TARGETS, IDS) if has_targets else ()
    assert torch.autograd.gradcheck(lambda *each: log_sum_exp(*each, *of_targets), tensors())


def test_classes_that_are_all_targets_have_finite_gradients() -> None:
    inputs, weight, bias = tensors()
    sums = log_sum_exp(inputs, weight, bias, torch.full((6,), 7), torch.full((4,), 7))
    assert (sums < -1e30).all()
    torch.logaddexp(torch.zeros(6), sums).sum().backward()
    for each in (inputs, weight, bias):
        assert each.grad is not None
        assert not each.grad.any()


def test_in_bfloat16_sums_are_float32() -> None:
    inputs, weight, bias = (each.detach().float() for each in tensors())
    narrow = inputs.bfloat16().requires_grad_(), weight.bfloat16().requires_grad_()
    found = log_sum_exp(*narrow, bias.requires_grad_(), TARGETS, IDS)
    found.sum().backward()
    assert found.dtype == torch.float32
    assert [each.grad.dtype for each in (*narrow, bias) if each.grad is not None] == [
        *[torch.bfloat16] * 2,
        torch.float32,
    ]
    wide = expected(inputs, weight, bias, has_targets=True)
    np.testing.assert_allclose(found.detach(), wide, atol=0.05)
