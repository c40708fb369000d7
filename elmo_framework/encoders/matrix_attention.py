"""The family of matrix attentions: scores between the vectors of two sequences."""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import sqrt
from typing import TypeAlias, final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from elmo_framework.config.registry import Registrable
from elmo_framework.config.types import Local, require_size
from elmo_framework.errors import allowed
from elmo_framework.model.part import Part
from elmo_framework.nn.attention import TERMS, combination_scores, combination_weight, dot_products

Rows: TypeAlias = Float[Tensor, "batch rows dim"]
Columns: TypeAlias = Float[Tensor, "batch columns dim"]
Scores: TypeAlias = Float[Tensor, "batch rows columns"]

_TINY = 1e-13
"""Added to the length of a vector, which may be zero."""


class MatrixAttention(Part, Registrable, ABC):
    """Scores each vector x of one sequence with each vector y of another.

    The scores are read by softmaxes over rows and columns, so that no member has a bias: the
    softmax would cancel it. A member takes `dim: Local[int]`.

    Args:
        dim: dimension of the vectors of both sequences.
    """

    @abstractmethod
    def forward(self, rows: Rows, columns: Columns) -> Scores:
        """Score all pairs; those with padding are meaningless."""


@final
@MatrixAttention.register("dot_product")
class DotProductMatrixAttention(MatrixAttention):
    """s = x y."""

    def __init__(self, dim: Local[int]) -> None:
        super().__init__()

    def forward(self, rows: Rows, columns: Columns) -> Scores:
        return dot_products(rows, columns)


@final
@MatrixAttention.register("scaled_dot_product")
class ScaledDotProductMatrixAttention(MatrixAttention):
    """s = x y / sqrt(dim)."""

    def __init__(self, dim: Local[int]) -> None:
        super().__init__()
        self._scale = 1 / sqrt(dim)

    def forward(self, rows: Rows, columns: Columns) -> Scores:
        return dot_products(rows, columns) * self._scale


@final
@MatrixAttention.register("cosine")
class CosineMatrixAttention(MatrixAttention):
    """s = x y / (|x| |y|)."""

    def __init__(self, dim: Local[int]) -> None:
        super().__init__()

    def forward(self, rows: Rows, columns: Columns) -> Scores:
        return dot_products(_normalized(rows), _normalized(columns))


@final
@MatrixAttention.register("bilinear")
class BilinearMatrixAttention(MatrixAttention):
    """s = x W y.

    Args:
        matrix_1_dim: if set, must equal the dimension of the first sequence.
        matrix_2_dim: if set, must equal the dimension of the second sequence.
    """

    def __init__(
        self, dim: Local[int], matrix_1_dim: int | None = None, matrix_2_dim: int | None = None
    ) -> None:
        super().__init__()
        require_size("matrix_1_dim", matrix_1_dim, inferred=dim)
        require_size("matrix_2_dim", matrix_2_dim, inferred=dim)
        self.weight = nn.Parameter(torch.empty(dim, dim))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, rows: Rows, columns: Columns) -> Scores:
        return dot_products(rows @ self.weight, columns)


@final
@MatrixAttention.register("linear")
class LinearMatrixAttention(MatrixAttention):
    """s = w_1 t_1 + w_2 t_2 + ..., where a term t is x, y, x*y, x+y or x-y.

    Args:
        combination: the terms, separated by commas, such as `x,y,x*y`.
        tensor_1_dim: if set, must equal the dimension of the first sequence.
        tensor_2_dim: if set, must equal the dimension of the second sequence.
    """

    def __init__(
        self,
        dim: Local[int],
        combination: str = "x,y",
        tensor_1_dim: int | None = None,
        tensor_2_dim: int | None = None,
    ) -> None:
        super().__init__()
        require_size("tensor_1_dim", tensor_1_dim, inferred=dim)
        require_size("tensor_2_dim", tensor_2_dim, inferred=dim)
        self._terms = combination.split(",")
        for term in self._terms:
            if term not in TERMS:
                raise ValueError(f"combination: unknown term {term!r}; {allowed(term, TERMS)}")
        self.weight = combination_weight(len(self._terms), dim)

    def forward(self, rows: Rows, columns: Columns) -> Scores:
        return combination_scores(rows, columns, self.weight, self._terms)


def _normalized(vectors: Tensor) -> Tensor:
    lengths: Tensor = torch.linalg.vector_norm(vectors, dim=-1, keepdim=True)
    return vectors / (lengths + _TINY)
