import pytest
import torch
from torch import Tensor

from elmo_framework.nn.linear_recurrence import _doubled, _loop, scan

LENGTHS = [1, 2, 3, 8, 13]


def random(*shape: int) -> Tensor:
    return torch.rand(
        *shape, dtype=torch.double, generator=torch.Generator().manual_seed(sum(shape))
    )


def by_definition(decay: Tensor, inputs: Tensor, state: Tensor) -> Tensor:
    states = []
    for factor, added in zip(decay, inputs, strict=True):
        state = factor * state + added
        states.append(state)
    return torch.stack(states)


@pytest.mark.parametrize("num_tokens", LENGTHS)
@pytest.mark.parametrize("method", [_loop, _doubled])
def test_scan_equals_the_loop_in_float64(method, num_tokens) -> None:
    values = random(num_tokens, 2, 3), random(num_tokens, 2, 3) - 0.5, random(2, 3)
    expected = by_definition(*values)
    torch.testing.assert_close(method(*values), expected, rtol=1e-14, atol=1e-14)
    torch.testing.assert_close(scan(*values), expected, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("num_tokens", LENGTHS)
def test_gradients_equal_those_of_the_loop(num_tokens) -> None:
    values = [random(num_tokens, 2, 3), random(num_tokens, 2, 3) - 0.5, random(2, 3)]
    for value in values:
        value.requires_grad_()
    weight = random(num_tokens, 2, 3) - 0.5
    ours = torch.autograd.grad((scan(*values) * weight).sum(), values)
    theirs = torch.autograd.grad((by_definition(*values) * weight).sum(), values)
    torch.testing.assert_close(ours, theirs, rtol=1e-13, atol=1e-13)


def test_no_steps_leave_no_states() -> None:
    decay, inputs, start = torch.zeros(0, 2, 3), torch.zeros(0, 2, 3), torch.ones(2, 3)
    assert scan(decay, inputs, start.requires_grad_()).shape == (0, 2, 3)
