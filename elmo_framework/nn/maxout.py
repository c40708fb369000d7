"""Maxout layers: each number is the largest of several."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F


class MaxoutLayer(NamedTuple):
    """What one layer is like: its width, of how many the largest is kept, and the dropout."""

    dim: int
    pool_size: int
    dropout: float


class Maxout(nn.Module):
    """For each layer: x <- dropout(max_k (W_k x + b_k)) (Goodfellow et al. 2013).

    Args:
        input_dim: the width of the inputs.
        layers: from the first to the last.
    """

    def __init__(self, input_dim: int, layers: Sequence[MaxoutLayer]) -> None:
        super().__init__()
        self.layers = tuple(layers)
        widths = [input_dim, *(layer.dim for layer in layers)]
        self.output_dim = widths[-1]
        self.linear_layers = nn.ModuleList(
            nn.Linear(before, after * layer.pool_size)
            for (before, after), layer in zip(pairwise(widths), layers, strict=True)
        )

    def forward(self, inputs: Float[Tensor, "batch input_dim"]) -> Float[Tensor, "batch output"]:
        """Transform vectors."""
        for linear, layer in zip(self.linear_layers, self.layers, strict=True):
            products = linear(inputs).unflatten(1, (layer.dim, layer.pool_size))
            inputs = F.dropout(products.amax(dim=2), layer.dropout, training=self.training)
        return inputs
