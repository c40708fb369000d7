"""Feed-forward network: linear layers, each followed by an activation and dropout."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple, TypeAlias, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from elmo_framework.kernels.product import linear

Activation: TypeAlias = Literal["relu", "tanh", "sigmoid", "linear"]

_FUNCTIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "linear": lambda inputs: inputs,
}


def activate(inputs: Tensor, activation: Activation) -> Tensor:
    """Apply an activation function to each number; `linear` changes nothing."""
    return _FUNCTIONS[activation](inputs)


class Layer(NamedTuple):
    """One layer of a feed-forward network.

    Attributes:
        dim: output dimension.
        activation: applied to each output.
        dropout: dropout rate.
        pool_size: number of linear functions of which an output is the maximum; more than one
            make a maxout layer (Goodfellow et al. 2013).
    """

    dim: int
    activation: Activation
    dropout: float
    pool_size: int = 1


class FeedForward(nn.Module):
    """For each layer: x <- dropout(activation(max_k (W_k x + b_k)))."""

    def __init__(self, input_dim: int, layers: Sequence[Layer]) -> None:
        super().__init__()
        self.layers = tuple(layers)
        widths = [input_dim, *(layer.dim for layer in layers)]
        self.output_dim = widths[-1]
        self.linear_layers = nn.ModuleList(
            nn.Linear(before, after * layer.pool_size)
            for (before, after), layer in zip(pairwise(widths), layers, strict=True)
        )

    def forward(self, inputs: Float[Tensor, "... input_dim"]) -> Float[Tensor, "... output_dim"]:
        if not self.layers:
            return inputs
        return self.after_product(_product(inputs, self._first))

    def first_weights(self, dims: Sequence[int]) -> list[Tensor]:
        """Split the weight of the first layer by parts of its input, which have sizes `dims`."""
        # Contiguous, as products with a slice of a matrix take a hundred times as long.
        parts = torch.split(self._first.weight, list(dims), dim=1)
        return [part.contiguous() for part in parts]

    @property
    def first_bias(self) -> Tensor:
        return self._first.bias

    def after_product(
        self, product: Float[Tensor, "... hidden_dim"]
    ) -> Float[Tensor, "... output_dim"]:
        """Continue from `W x + b` of the first layer, for callers with a faster way to it."""
        outputs = self._activated(product, self.layers[0])
        for later, layer in zip(self.linear_layers[1:], self.layers[1:], strict=True):
            outputs = self._activated(_product(outputs, later), layer)
        return outputs

    @property
    def _first(self) -> nn.Linear:
        return cast(nn.Linear, self.linear_layers[0])

    def _activated(self, product: Tensor, layer: Layer) -> Tensor:
        if layer.pool_size > 1:
            pools = product.view(*product.shape[:-1], layer.dim, layer.pool_size)
            product = pools.amax(dim=-1)
        activated = activate(product, layer.activation)
        return F.dropout(activated, layer.dropout, training=self.training)


def _product(inputs: Tensor, layer: nn.Module) -> Tensor:
    assert isinstance(layer, nn.Linear)
    return linear(inputs, layer.weight, layer.bias)
