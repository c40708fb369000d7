"""Adagrad's update against its equation."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from elmo_framework.kernels import adagrad


@pytest.mark.parametrize("scale", [None, 4.0])
@pytest.mark.parametrize("weight_decay", [0.0, 0.3])
def test_parameters_and_squares_follow_the_equation(
    scale: float | None, weight_decay: float
) -> None:
    generator = torch.Generator().manual_seed(0)
    weights, gradients, squares = (
        [torch.randn(shape, generator=generator).double() for shape in ((3, 2), (4,))]
        for _ in range(3)
    )
    squares = [each.abs() for each in squares]
    expected = []
    for weight, gradient, square in zip(weights, gradients, squares, strict=True):
        slope = gradient.numpy() / (scale or 1.0) + weight_decay * weight.numpy()
        total = square.numpy() + slope**2
        expected.append((weight.numpy() - 0.5 * slope / (np.sqrt(total) + 1e-3), total))
    unchanged = [each.clone() for each in gradients]
    adagrad.update(
        weights,
        gradients,
        squares,
        rate=torch.tensor(0.5),
        scale=None if scale is None else torch.tensor(scale),
        eps=1e-3,
        weight_decay=weight_decay,
    )
    for found, each in zip(zip(weights, squares, strict=True), expected, strict=True):
        for one, other in zip(found, each, strict=True):
            np.testing.assert_allclose(one.numpy(), other, rtol=1e-12)
    assert all(map(torch.equal, gradients, unchanged))
