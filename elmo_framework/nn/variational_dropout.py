"""Dropout of the same dimensions at each word of a sequence."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F


class VariationalDropout(nn.Module):
    """Multiplies each sequence by one mask (Gal and Ghahramani 2016).

    Args:
        p: dropout rate; the remaining values are scaled by 1 / (1 - p).
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        if not 0 <= p < 1:
            raise ValueError(f"dropout rate is {p}; it must be at least 0 and below 1")
        self.p = p

    def forward(
        self, inputs: Float[Tensor, "batch tokens dim"]
    ) -> Float[Tensor, "batch tokens dim"]:
        if not self.training or not self.p:
            return inputs
        mask = F.dropout(inputs.new_ones(len(inputs), 1, inputs.shape[2]), self.p)
        return inputs * mask
