"""Highway layers of the paper's token encoder."""

from __future__ import annotations

from math import sqrt

import torch
from jaxtyping import Float
from torch import Tensor, nn

from elmo_framework.nn.linear import Linear

# The gate is nearly closed at first, so that a new layer copies its input (bilm-tf, training.py).
_CARRY_BIAS = -2.0


class Highway(nn.Module):
    """A stack of highway layers (Srivastava et al. 2015).

    g = sigmoid(W_carry x + b_carry); t = relu(W_transform x + b_transform);
    y = g t + (1 - g) x. The names are bilm-tf's: its carry gate is that of the *transformed*
    vector.

    Args:
        dim: dimension of the vectors.
        num_layers: number of layers.
    """

    def __init__(self, dim: int, num_layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(_HighwayLayer(dim) for _ in range(num_layers))

    def forward(self, inputs: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch dim"]:
        for layer in self.layers:
            inputs = layer(inputs)
        return inputs


class _HighwayLayer(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.carry, self.transform = Linear(dim, dim), Linear(dim, dim)
        for gate in (self.carry, self.transform):
            nn.init.normal_(gate.weight, std=sqrt(1 / dim))
        nn.init.constant_(self.carry.bias, _CARRY_BIAS)
        nn.init.zeros_(self.transform.bias)

    def forward(self, inputs: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch dim"]:
        # In mixed precision the products are bfloat16, but the carried values stay float32.
        transformed = torch.relu(self.transform(inputs)).to(inputs.dtype)
        return torch.lerp(inputs, transformed, torch.sigmoid(self.carry(inputs)).to(inputs.dtype))
