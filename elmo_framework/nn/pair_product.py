"""Linear layer on the elementwise products of all pairs of vectors."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from elmo_framework.kernels.backend import autocast_dtype
from elmo_framework.kernels.product import product


def pair_products(
    left: Float[Tensor, "left dim"],
    right: Float[Tensor, "right dim"],
    weight: Float[Tensor, "out dim"],
) -> Float[Tensor, "right left out"]:
    """Return `weight (l * r)` for each vector l on the left and each vector r on the right.

    As `weight (l * r) = (weight diag(l)) r`, this is one product of the vectors on the right
    with a weight for each vector on the left. The products of pairs are in memory only while
    gradients are computed; until then only the inputs are saved.
    """
    if autocast_dtype(left) is not None:
        products = right @ _scaled(left, weight).T
        return products.view(len(right), len(left), len(weight))
    outputs: Tensor = _PairProducts.apply(left, right, weight)  # type: ignore[no-untyped-call]
    return outputs


def _scaled(left: Tensor, weight: Tensor) -> Tensor:
    return (left[:, None] * weight).flatten(0, 1)  # left*out dim


class _PairProducts(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, left: Tensor, right: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(left, right, weight)
        return product(right, _scaled(left, weight)).view(len(right), len(left), len(weight))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        left, right, weight = ctx.saved_tensors
        pairs, rows = left[:, None] * right, gradient.transpose(0, 1).flatten(0, 1)
        of_weight = product(rows.T, pairs.flatten(0, 1).T)
        of_pairs = product(rows, weight.T).view_as(pairs)  # left right dim
        of_left = torch.mul(of_pairs, right, out=pairs).sum(dim=1)
        of_right = of_pairs.mul_(left[:, None]).sum(dim=0)
        return of_left, of_right, of_weight
