import math

import pytest
import torch

from elmo_framework.nn.activation import activate


@pytest.mark.parametrize(
    ("name", "expected"),
    [("relu", 0.0), ("tanh", math.tanh(-2)), ("sigmoid", 1 / (1 + math.exp(2))), ("linear", -2.0)],
)
def test_an_activation_is_applied_by_name(name, expected):
    assert float(activate(torch.tensor(-2.0, dtype=torch.float64), name)) == pytest.approx(expected)
