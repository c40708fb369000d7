import pytest
import torch
from torch.nn import functional

from elmo_framework.nn.window_maxima import window_maxima

WIDTHS = [1, 2, 5]


def tensors(width: int, dtype=torch.double) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(width)
    inputs, weight = torch.randn(4, 5, 3, dtype=dtype), torch.randn(6, 3, width, dtype=dtype)
    return inputs.requires_grad_(), weight.requires_grad_()


def plain(inputs: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return functional.conv1d(inputs.transpose(1, 2), weight).amax(dim=2)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("dtype", [torch.double, torch.float])
def test_it_is_the_maximum_of_a_convolution(width: int, dtype: torch.dtype) -> None:
    inputs, weight = tensors(width, dtype)
    expected = plain(inputs, weight)
    torch.testing.assert_close(window_maxima(inputs, weight), expected, atol=1e-5, rtol=0)
    with torch.no_grad():
        torch.testing.assert_close(window_maxima(inputs, weight), expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("width", WIDTHS)
def test_its_gradient_is_the_numerical_one(width: int) -> None:
    assert torch.autograd.gradcheck(window_maxima, tensors(width))


@pytest.mark.parametrize("width", WIDTHS)
def test_gradient_equals_that_of_a_float32_convolution(width: int) -> None:
    inputs, weight = tensors(width, torch.float)
    expected = torch.autograd.grad(plain(inputs, weight).square().sum(), [inputs, weight])
    found = torch.autograd.grad(window_maxima(inputs, weight).square().sum(), [inputs, weight])
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-5)


def test_only_what_needs_a_gradient_gets_one() -> None:
    inputs, weight = tensors(2)
    window_maxima(inputs.detach(), weight).sum().backward()
    assert inputs.grad is None
    assert weight.grad.abs().sum() > 0


def test_equal_windows_count_once() -> None:
    inputs = torch.ones(1, 4, 2, dtype=torch.double)
    _, weight = tensors(1)
    window_maxima(inputs, weight[:, :2]).sum().backward()
    assert torch.equal(weight.grad[:, :2], torch.ones(6, 2, 1, dtype=torch.double))


def test_empty_batch_has_no_maxima_and_no_gradient() -> None:
    inputs, weight = tensors(2)
    found = window_maxima(inputs[:0], weight)
    assert found.shape == (0, 6)
    found.sum().backward()
    assert (weight.grad == 0).all()


def test_mixed_precision_uses_the_convolution() -> None:
    inputs, weight = tensors(2, torch.float)
    with torch.autocast("cpu", torch.bfloat16):
        found = window_maxima(inputs, weight)
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.float(), plain(inputs, weight), atol=0.1, rtol=0.02)
