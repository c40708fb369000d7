"""Products in tiles in Triton's interpreter, against the plain functions of the same operators."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from elmo_framework.kernels import log_sum_exp, window_maxima
from tests.extras.triton_interpreter import (
    TYPES,
    assert_near,
    dot_in_bfloat16,
    kernels_of,
    no_gpu,
    random,
)

triton_tiles = kernels_of("triton_tiles")
LOGITS = pytest.mark.parametrize(
    ("positions", "classes", "dim"), [(3, 5, 7), (1, 1, 1), (130, 70, 33), (65, 200, 64)]
)
CONVOLUTIONS = pytest.mark.parametrize(
    ("rows", "steps", "dim", "filters", "width"),
    [(3, 5, 4, 7, 2), (1, 1, 1, 1, 1), (130, 9, 16, 70, 7), (66, 4, 3, 65, 1)],
)


@pytest.fixture(autouse=True)
def _no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    no_gpu(monkeypatch)
    dot_in_bfloat16(monkeypatch)


def softmax(
    positions: int, classes: int, dim: int, dtype: torch.dtype, *, has_targets: bool
) -> tuple[Tensor | None, ...]:
    """Return hidden states, weights, biases, targets, and ids of classes of which some are hit."""
    inputs, weight = random((positions, dim), (classes, dim), dtype=dtype)
    (bias,) = random((classes, 1))
    ids = 3 * torch.randperm(classes, generator=torch.Generator().manual_seed(1))
    targets = torch.arange(positions) % (3 * classes)
    return inputs, weight, bias[:, 0], *([targets, ids] if has_targets else [None, None])


@TYPES
@LOGITS
@pytest.mark.parametrize("has_targets", [True, False])
def test_log_sum_exp(
    positions: int, classes: int, dim: int, dtype: torch.dtype, has_targets: bool
) -> None:
    tensors = softmax(positions, classes, dim, dtype, has_targets=has_targets)
    found, expected = (
        compute(*tensors) for compute in (triton_tiles.log_sum_exp, log_sum_exp._plain_log_sum_exp)
    )
    # The plain function rounds logits to bfloat16; the largest are about 50.
    assert_near([found], [expected], 2e-5 if dtype == torch.float32 else 1e-2)


@TYPES
@LOGITS
@pytest.mark.parametrize("has_targets", [True, False])
def test_log_sum_exp_backward(
    positions: int, classes: int, dim: int, dtype: torch.dtype, has_targets: bool
) -> None:
    inputs, weight, *others = softmax(positions, classes, dim, dtype, has_targets=has_targets)
    assert inputs is not None
    inputs = inputs / 8
    (gradient,) = random((positions, 1))
    sums = log_sum_exp._plain_log_sum_exp(inputs, weight, *others)
    arguments = inputs, weight, *others, sums, gradient[:, 0]
    results = [
        list(compute(*arguments))
        for compute in (triton_tiles.log_sum_exp_backward, log_sum_exp._plain_of_logits)
    ]
    assert_near(*results, 2e-5 if dtype == torch.float32 else 3e-2)


@pytest.mark.filterwarnings("ignore:invalid value")
def test_log_sum_exp_of_no_number_is_no_number() -> None:
    inputs, weight, bias, *_ = softmax(3, 5, 7, torch.float32, has_targets=False)
    assert inputs is not None
    inputs[1, 2] = torch.nan
    sums = triton_tiles.log_sum_exp(inputs, weight, bias, None, None)
    assert sums.isnan().tolist() == [False, True, False]


@TYPES
@CONVOLUTIONS
def test_window_maxima(
    rows: int, steps: int, dim: int, filters: int, width: int, dtype: torch.dtype
) -> None:
    steps = steps + width - 1
    inputs, weight = random((rows, steps, dim), (filters, dim, width), dtype=dtype)
    (gradient,) = random((rows, filters), dtype=dtype)
    maxima, places = triton_tiles.window_maxima(inputs, weight)
    expected, expected_places = window_maxima._plain_maxima(inputs, weight)
    assert_near([maxima], [expected], 2e-5)
    if dtype == torch.float32:  # in bfloat16 the plain function rounds to equal maxima
        assert torch.equal(places, expected_places)
    found = triton_tiles.window_maxima_backward(gradient, places, inputs, weight)
    wide = gradient.float(), places, inputs.float(), weight.float()
    assert_near(list(found), list(window_maxima._plain_gradients(*wide)), 5e-5)


@pytest.mark.filterwarnings("ignore:invalid value")
def test_maximum_with_no_number_is_no_number() -> None:
    inputs, weight = random((3, 5, 4), (7, 4, 2))
    inputs[1, 2] = torch.nan
    maxima, _ = triton_tiles.window_maxima(inputs, weight)
    assert maxima.isnan().all(dim=1).tolist() == [False, True, False]


def test_no_rows_have_no_maxima() -> None:
    inputs, weight = random((0, 5, 4), (7, 4, 2))
    maxima, places = triton_tiles.window_maxima(inputs, weight)
    assert maxima.shape == (0, 7)
    gradients = triton_tiles.window_maxima_backward(maxima, places, inputs, weight)
    assert [each.shape for each in gradients] == [inputs.shape, weight.shape]
    assert not gradients[1].any()
