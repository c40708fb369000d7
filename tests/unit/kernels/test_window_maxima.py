"""Maxima of convolutions, on the CPU and by the code for accelerators, against PyTorch's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext

import pytest
import torch
from torch.nn import functional

from elmo_framework.kernels import window_maxima as module
from elmo_framework.kernels.backend import accelerator_code
from elmo_framework.kernels.window_maxima import window_maxima


@pytest.fixture(params=[nullcontext, accelerator_code], ids=["cpu", "accelerator"])
def each_code(request: pytest.FixtureRequest) -> Iterator[None]:
    with request.param():
        yield


WIDTHS = [1, 2, 5]


def tensors(width: int, dtype=torch.double) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(width)
    inputs, weight = torch.randn(4, 5, 3, dtype=dtype), torch.randn(6, 3, width, dtype=dtype)
    return inputs.requires_grad_(), weight.requires_grad_()


def plain(inputs: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return functional.conv1d(inputs.transpose(1, 2), weight).amax(dim=2)


@pytest.mark.usefixtures("each_code")
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("dtype", [torch.double, torch.float])
def test_it_is_the_maximum_of_a_convolution(width: int, dtype: torch.dtype) -> None:
    inputs, weight = tensors(width, dtype)
    expected = plain(inputs, weight)
    torch.testing.assert_close(window_maxima(inputs, weight), expected, atol=1e-5, rtol=0)
    with torch.no_grad():
        torch.testing.assert_close(window_maxima(inputs, weight), expected, atol=1e-5, rtol=0)


@pytest.mark.usefixtures("each_code")
@pytest.mark.parametrize("width", WIDTHS)
def test_its_gradient_is_the_numerical_one(width: int) -> None:
    assert torch.autograd.gradcheck(window_maxima, tensors(width))


@pytest.mark.usefixtures("each_code")
@pytest.mark.parametrize("width", WIDTHS)
def test_gradient_equals_that_of_a_float32_convolution(width: int) -> None:
    inputs, weight = tensors(width, torch.float)
    expected = torch.autograd.grad(plain(inputs, weight).square().sum(), [inputs, weight])
    found = torch.autograd.grad(window_maxima(inputs, weight).square().sum(), [inputs, weight])
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-5)


@pytest.mark.usefixtures("each_code")
def test_only_tensors_that_require_a_gradient_get_one() -> None:
    inputs, weight = tensors(2)
    window_maxima(inputs.detach(), weight).sum().backward()
    assert inputs.grad is None
    assert weight.grad.abs().sum() > 0


@pytest.mark.usefixtures("each_code")
def test_equal_windows_count_once() -> None:
    inputs = torch.ones(1, 4, 2, dtype=torch.double)
    _, weight = tensors(1)
    window_maxima(inputs, weight[:, :2]).sum().backward()
    assert torch.equal(weight.grad[:, :2], torch.ones(6, 2, 1, dtype=torch.double))


@pytest.mark.usefixtures("each_code")
def test_empty_batch_has_no_maxima_and_no_gradient() -> None:
    inputs, weight = tensors(2)
    found = window_maxima(inputs[:0], weight)
    assert found.shape == (0, 6)
    found.sum().backward()
    assert (weight.grad == 0).all()


@pytest.mark.usefixtures("each_code")
def test_in_mixed_precision_products_are_bfloat16() -> None:
    """Where the CPU adds up such products in float32, the maxima are float32."""
    inputs, weight = tensors(2, torch.float)
    with torch.autocast("cpu", torch.bfloat16):
        found = window_maxima(inputs, weight)
        is_wide = module.is_fast(inputs, "bfloat16")
    assert found.dtype == (torch.float32 if is_wide else torch.bfloat16)
    torch.testing.assert_close(found.float(), plain(inputs, weight), atol=0.1, rtol=0.02)


@pytest.mark.parametrize("width", WIDTHS)
def test_compiled_gradients_equal_the_plain_ones(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs, weight = (t.detach().repeat(20, 1, 1) for t in tensors(width, torch.float))
    inputs, weight = inputs.requires_grad_(), weight.requires_grad_()
    chosen = torch.randn(80, 120) * (torch.rand(80, 120) < 0.5)
    found = torch.autograd.grad((window_maxima(inputs, weight) * chosen).sum(), [inputs, weight])
    monkeypatch.setattr(module, "_library", lambda *_: None)
    plain_ones = torch.autograd.grad(
        (window_maxima(inputs, weight) * chosen).sum(), [inputs, weight]
    )
    torch.testing.assert_close(found, plain_ones, atol=1e-4, rtol=1e-4)


def test_pieces_equal_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs, weight = tensors(2)
    with torch.no_grad(), accelerator_code():
        whole = window_maxima(inputs, weight)
        monkeypatch.setattr(module, "_WINDOWS_AT_ONCE_OF_ACCELERATORS", 5)
        torch.testing.assert_close(window_maxima(inputs, weight), whole)


def test_gradients_in_mixed_precision_are_near_those_of_float32() -> None:
    gradients = []
    for is_narrow in (False, True):
        inputs, weight = tensors(2, torch.float)
        with accelerator_code(), torch.autocast("cpu", torch.bfloat16, enabled=is_narrow):
            maxima = window_maxima(inputs, weight)
        maxima.float().square().sum().backward()
        gradients.append([inputs.grad, weight.grad])
    torch.testing.assert_close(gradients[1], gradients[0], atol=0.3, rtol=0.05)


@pytest.mark.parametrize(
    ("dim", "dtype", "expected"),
    [
        (16, torch.float32, True),
        (36, torch.float32, True),
        (37, torch.float32, False),
        (73, torch.bfloat16, True),
        (74, torch.bfloat16, False),
    ],
)
def test_tiles_of_wide_windows_do_not_fit_on_a_gpu(
    dim: int, dtype: torch.dtype, expected: bool
) -> None:
    """A window of 7 characters has 7 dim numbers, and a tile a power of 2."""
    assert module.has_kernel(torch.empty(5, dim, 7, dtype=dtype)) is expected
