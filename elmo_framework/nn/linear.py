"""Linear layer on the products of `kernels/product.py`."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from elmo_framework.kernels.product import Precision, Product, linear, prepared
from elmo_framework.nn.part import TensorPart


class Linear(nn.Linear, TensorPart):
    """PyTorch's linear layer with the product of the fastest backend; it can be frozen."""

    _frozen: Product | None = None

    def freeze(self, precision: Precision) -> None:
        """Prepare the current weights for inference; later changes of them have no effect.

        Raises:
            ValueError: the device does not support this precision.
        """
        self._frozen = prepared(self.weight, self.bias, precision)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the prepared product, which cannot be copied."""
        return {**self.__dict__, "_frozen": None}

    def forward(self, input: Float[Tensor, "*batch in"]) -> Float[Tensor, "*batch out"]:
        """Compute `input weight^T + bias`."""
        if self._frozen is None or torch.is_grad_enabled():
            return linear(input, self.weight, self.bias)
        return self._frozen(input.flatten(0, -2)).view(*input.shape[:-1], self.out_features)
