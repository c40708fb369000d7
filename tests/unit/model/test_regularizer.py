import pytest
import torch

from elmo_framework.config.parse import parse
from elmo_framework.model.regularizer import Regularizer

WEIGHT = torch.tensor([[3.0, -4.0], [0.0, 1.0]], requires_grad=True)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("l1", 0.01 * 8),
        ("l2", 0.01 * 26),
        ({"type": "l1", "alpha": 0.5}, 4.0),
        ({"alpha": 0.5}, 13.0),
        ({"type": "l2", "alpha": 0.0}, 0.0),
    ],
)
def test_the_penalty_is_alpha_times_the_sum(spec: object, expected: float) -> None:
    penalty = parse(Regularizer, spec, source="test").build().penalty(WEIGHT)

    assert penalty.item() == pytest.approx(expected)


def test_the_gradients_are_those_of_the_sums() -> None:
    of_l1, of_l2 = (
        torch.autograd.grad(parse(Regularizer, name, source="").build().penalty(WEIGHT), WEIGHT)[0]
        for name in ("l1", "l2")
    )

    torch.testing.assert_close(of_l1, 0.01 * WEIGHT.detach().sign())
    torch.testing.assert_close(of_l2, 0.02 * WEIGHT.detach())
