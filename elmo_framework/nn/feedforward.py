"""Linear layers, each followed by an activation and dropout."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from elmo_framework.nn.activation import Activation, activate


class Layer(NamedTuple):
    """What one layer is like: its width, what follows the product, and the dropout after that."""

    dim: int
    activation: Activation
    dropout: float


class FeedForward(nn.Module):
    """For each layer: x <- dropout(activation(W x + b)).

    Args:
        input_dim: the width of the inputs.
        layers: from the first to the last.
    """

    def __init__(self, input_dim: int, layers: Sequence[Layer]) -> None:
        super().__init__()
        self.layers = tuple(layers)
        widths = [input_dim, *(layer.dim for layer in layers)]
        self.output_dim = widths[-1]
        self.linear_layers = nn.ModuleList(
            nn.Linear(before, after) for before, after in pairwise(widths)
        )

    def forward(self, inputs: Float[Tensor, "... input_dim"]) -> Float[Tensor, "... output_dim"]:
        """Transform vectors."""
        for linear, layer in zip(self.linear_layers, self.layers, strict=True):
            activated = activate(linear(inputs), layer.activation)
            inputs = F.dropout(activated, layer.dropout, training=self.training)
        return inputs
