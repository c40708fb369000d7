"""Sparse gradients change a table as dense ones do."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from elmo_framework.kernels.backend import accelerator_code
from elmo_framework.model.model import Model
from elmo_framework.nn.sampled_softmax import SampledSoftmax
from elmo_framework.training.optimizer import Optimizer, adagrad, adam
from elmo_framework.training.sparse_gradients import (
    allow_sparse_gradients,
    clip_norm,
    clip_values,
    coalesced,
)

ROWS = torch.tensor([3, 1, 3, 5, 1, 1])
ON_BOTH = pytest.mark.parametrize("code", [nullcontext, accelerator_code])
"""Coalescing differs between the CPU and accelerators."""

Code = Callable[[], AbstractContextManager[None]]


def table() -> nn.Parameter:
    return nn.Parameter(torch.arange(21, dtype=torch.float64).view(7, 3) / 10)


def differentiate(weight: nn.Parameter, *, is_sparse: bool, factor: float = 1.0) -> None:
    rows = functional.embedding(ROWS, weight, sparse=is_sparse)
    (factor * (rows * torch.arange(1, 7)[:, None]).square().sum()).backward()


def after_three_updates(*, is_sparse: bool) -> tuple[Tensor, Tensor]:
    weight = table()
    optimizer = adagrad(lr=0.5, initial_accumulator_value=0.1).create([weight])
    for _ in range(3):
        differentiate(weight, is_sparse=is_sparse)
        optimizer.step()
        optimizer.zero_grad()
    return weight.detach(), optimizer.state[weight]["sum"]


@ON_BOTH
def test_sparse_updates_equal_dense_updates(code: Code) -> None:
    dense = after_three_updates(is_sparse=False)
    with code():
        sparse = after_three_updates(is_sparse=True)
    torch.testing.assert_close(sparse[0], dense[0], rtol=1e-14, atol=0)
    torch.testing.assert_close(sparse[1], dense[1], rtol=1e-14, atol=0)


@ON_BOTH
def test_unused_rows_are_unchanged(code: Code) -> None:
    with code():
        weight, _ = after_three_updates(is_sparse=True)
    changed = (weight != table().detach()).any(dim=1)
    assert changed.tolist() == [row in {1, 3, 5} for row in range(7)]


@ON_BOTH
@pytest.mark.parametrize("largest", [0.5, 1e9, float("inf")])
def test_norm_counts_repeated_rows_once_and_clips_all(largest: float, code: Code) -> None:
    weights = [table() for _ in range(4)]
    for weight, is_sparse in zip(weights, (False, False, True, False), strict=True):
        differentiate(weight, is_sparse=is_sparse, factor=0.1)
    dense, mixed = weights[:2], weights[2:]
    expected = nn.utils.clip_grad_norm_(dense, largest)
    with code():
        torch.testing.assert_close(clip_norm(mixed, largest), expected)
    for one, other in zip(dense, mixed, strict=True):
        assert one.grad is not None
        assert other.grad is not None
        torch.testing.assert_close(other.grad.to_dense(), one.grad)


def test_accelerators_coalesce_without_counting() -> None:
    weight = table()
    differentiate(weight, is_sparse=True)
    gradient = weight.grad
    assert gradient is not None
    with accelerator_code():
        summed = coalesced(gradient)
    assert summed.values().shape == (6, 3)
    assert summed.indices()[0].tolist() == [1, 3, 5, 1, 1, 1]
    torch.testing.assert_close(summed.values()[:3], gradient.coalesce().values())
    assert not summed.values()[3:].any()
    assert coalesced(summed) is summed


@ON_BOTH
@pytest.mark.parametrize("is_sparse", [True, False])
def test_fused_adagrad_scales_by_itself_on_accelerators(is_sparse: bool, code: Code) -> None:
    weights, scaled_early = [table() for _ in range(2)], []
    for weight, in_optimizer in zip(weights, (False, True), strict=True):
        optimizer = adagrad(lr=0.5, initial_accumulator_value=0.1).create([weight])
        for _ in range(2):
            differentiate(weight, is_sparse=is_sparse)
            with code():
                norm = clip_norm([weight], 0.5, optimizer if in_optimizer else None)
                assert norm > 0.5
                assert weight.grad is not None
                values = weight.grad.coalesce().values() if is_sparse else weight.grad
                scaled_early.append(float(values.norm()) < 0.51)
                optimizer.step()
            optimizer.zero_grad()
        assert optimizer.grad_scale is None
    assert scaled_early == [True, True, *[code is nullcontext] * 2]
    torch.testing.assert_close(*weights, rtol=1e-6, atol=0)


def test_sparse_and_dense_values_are_clipped() -> None:
    dense, sparse = table(), table()
    differentiate(dense, is_sparse=False)
    differentiate(sparse, is_sparse=True)
    clip_norm([sparse], float("inf"))
    clip_values([dense, sparse], 0.7)
    assert dense.grad is not None
    assert sparse.grad is not None
    torch.testing.assert_close(sparse.grad.to_dense(), dense.grad)
    assert dense.grad.abs().max() == 0.7


class Softmaxes(nn.Module):
    """Stand-in for a model: only its modules are used."""

    def __init__(self) -> None:
        super().__init__()
        self.softmax = SampledSoftmax(4, 20, num_samples=5)


@pytest.mark.parametrize(
    ("optimizer", "is_alone", "expected"),
    [
        (adagrad(), True, True),
        (adagrad(), False, False),
        (adagrad(weight_decay=0.1), True, False),
        (adam(), True, False),
    ],
)
def test_sparse_gradients_are_for_one_process_with_adagrad(
    optimizer: Optimizer, is_alone: bool, expected: bool
) -> None:
    model: Model[object] = Softmaxes()  # type: ignore[assignment]
    model.softmax.has_sparse_gradients = not expected  # type: ignore[union-attr]
    allow_sparse_gradients(model, optimizer.create(model.parameters()), is_alone=is_alone)
    assert model.softmax.has_sparse_gradients is expected  # type: ignore[union-attr]


def test_softmax_gradient_is_equal_sparse_and_dense() -> None:
    softmax = SampledSoftmax(4, 20, num_samples=5)
    inputs, targets = torch.randn(2, 6, 4), torch.randint(0, 20, (2, 6))
    gradients = []
    for is_sparse in (False, True):
        softmax.has_sparse_gradients = is_sparse
        softmax.zero_grad()
        torch.manual_seed(0)
        softmax(inputs, targets).sum().backward()
        assert softmax.weight.grad is not None
        assert softmax.weight.grad.is_sparse is is_sparse
        gradients.append(softmax.weight.grad.to_dense())
    torch.testing.assert_close(*gradients)
