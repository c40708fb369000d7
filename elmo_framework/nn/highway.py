"""Linear and highway layers of the paper's token encoder."""

from __future__ import annotations

from math import sqrt
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from elmo_framework.kernels.product import Precision, Product, linear, prepared
from elmo_framework.nn.part import TensorPart
from elmo_framework.nn.row_wise import row_wise_sigmoid

# The gate is nearly closed at first, so that a new layer copies its input (bilm-tf, training.py).
_CARRY_BIAS = -2.0


class Linear(nn.Linear, TensorPart):
    """PyTorch's linear layer with the product of the fastest backend; it can be frozen."""

    _frozen: Product | None = None

    def freeze(self, precision: Precision) -> None:
        self._frozen = prepared(self.weight, self.bias, precision)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the prepared product, which cannot be copied."""
        return {**self.__dict__, "_frozen": None}

    def forward(self, input: Float[Tensor, "*batch in"]) -> Float[Tensor, "*batch out"]:
        if self._frozen is None or torch.is_grad_enabled():
            return linear(input, self.weight, self.bias)
        rows = input.reshape(-1, input.shape[-1])
        rows = rows.to(self.weight.dtype)  # in mixed precision, it is bfloat16
        return self._frozen(rows).view(*input.shape[:-1], self.out_features)


class Highway(nn.Module):
    """A stack of highway layers (Srivastava et al. 2015).

    g = sigmoid(W_carry x + b_carry); t = relu(W_transform x + b_transform);
    y = g t + (1 - g) x. The names are bilm-tf's: its carry gate is that of the *transformed*
    vector.
    """

    def __init__(self, dim: int, num_layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(HighwayLayer(dim) for _ in range(num_layers))

    def forward(self, inputs: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch dim"]:
        for layer in self.layers:
            inputs = layer(inputs)
        return inputs


class HighwayLayer(nn.Module):
    """One layer of a `Highway`."""

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
        gate = row_wise_sigmoid(self.carry(inputs)).to(inputs.dtype)
        return torch.lerp(inputs, transformed, gate)
