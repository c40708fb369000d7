"""Maxout layers: each output is the maximum of several linear functions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F


class MaxoutLayer(NamedTuple):
    """Output dimension, number of linear functions per output, and dropout rate of a layer."""

    dim: int
    pool_size: int
    dropout: float


class Maxout(nn.Module):
    """For each layer: x <- dropout(max_k (W_k x + b_k)) (Goodfellow et al. 2013).

    Args:
        input_dim: dimension of the inputs.
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
        for linear, layer in zip(self.linear_layers, self.layers, strict=True):
            products = linear(inputs).unflatten(1, (layer.dim, layer.pool_size))
            inputs = F.dropout(products.amax(dim=2), layer.dropout, training=self.training)
        return inputs
