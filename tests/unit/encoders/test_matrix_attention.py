"""Each attention is compared with a loop over pairs of vectors in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from jaxtyping import Float64

from elmo_framework.config.parse import parse
from elmo_framework.encoders.matrix_attention import MatrixAttention
from elmo_framework.errors import BuildError

DIM = 4
Vector = Float64[np.ndarray, " dim"]
Reference = Callable[[Vector, Vector, Any], float]


def built(config: Any) -> MatrixAttention:
    torch.manual_seed(3)
    attention: MatrixAttention = parse(MatrixAttention, config, source="a").build(dim=DIM)
    return attention.double()


def linear(combination: str, *terms: Callable[[Vector, Vector], Vector]) -> Any:
    def score(x: Vector, y: Vector, weight: Any) -> float:
        return float(sum(w @ term(x, y) for w, term in zip(weight, terms, strict=True)))

    return {"type": "linear", "combination": combination}, score


CASES: list[tuple[Any, Reference]] = [
    ("dot_product", lambda x, y, _: x @ y),
    ("scaled_dot_product", lambda x, y, _: x @ y / 2),
    ("cosine", lambda x, y, _: x @ y / np.linalg.norm(x) / np.linalg.norm(y)),
    ("bilinear", lambda x, y, weight: x @ weight @ y),
    linear("x,y", lambda x, y: x, lambda x, y: y),
    linear("x,y,x*y", lambda x, y: x, lambda x, y: y, lambda x, y: x * y),
    linear("y*x", lambda x, y: x * y),
    linear("y,x+y,x-y", lambda x, y: y, lambda x, y: x + y, lambda x, y: x - y),
    linear("y-x,y+x", lambda x, y: y - x, lambda x, y: x + y),
]


@pytest.mark.parametrize(("config", "reference"), CASES)
def test_scores_are_those_of_each_pair(config: Any, reference: Reference) -> None:
    attention = built(config)
    drawn = torch.Generator().manual_seed(1)
    rows, columns = (
        torch.randn(2, number, DIM, dtype=torch.float64, generator=drawn) for number in (3, 5)
    )
    weight = next((each.detach().numpy() for each in attention.parameters()), None)
    expected = [
        [[reference(x, y, weight) for y in second.numpy()] for x in first.numpy()]
        for first, second in zip(rows, columns, strict=True)
    ]

    np.testing.assert_allclose(attention(rows, columns).detach(), expected, atol=1e-10)


def test_padding_has_finite_cosines() -> None:
    zeros = torch.zeros(1, 2, DIM, dtype=torch.float64)
    assert built("cosine")(zeros, zeros).tolist() == [[[0.0, 0.0], [0.0, 0.0]]]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"type": "linear", "combination": "x,z"}, "unknown term 'z'"),
        ({"type": "linear", "combination": ""}, "unknown term ''"),
        ({"type": "linear", "tensor_2_dim": 3}, "tensor_2_dim"),
        ({"type": "bilinear", "matrix_1_dim": 3}, "matrix_1_dim"),
    ],
)
def test_what_does_not_fit_is_refused(config: Any, message: str) -> None:
    with pytest.raises(BuildError, match=message):
        built(config)
