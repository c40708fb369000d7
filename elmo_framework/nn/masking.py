"""Masks of sequences of vectors: pooling without padding, and dropout with one mask a sequence."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F


def moved_mask(
    mask: Bool[Tensor, "batch tokens"], device: torch.device
) -> Bool[Tensor, "batch tokens"]:
    """Return a mask on a device, without waiting for it.

    One of the CPU that is true everywhere is not copied, so that an update can be recorded.
    """
    if mask.is_cpu and device.type != "cpu" and mask.all():
        return torch.ones(mask.shape, dtype=torch.bool, device=device)
    return mask.to(device, non_blocking=True)


def masked_sum(
    inputs: Float[Tensor, "batch tokens dim"], mask: Bool[Tensor, "batch tokens"]
) -> Float[Tensor, "batch dim"]:
    """Add the vectors of each row; zeros for a row without any."""
    return inputs.masked_fill(~mask[:, :, None], 0).sum(dim=1)


def masked_mean(
    inputs: Float[Tensor, "batch tokens dim"], mask: Bool[Tensor, "batch tokens"]
) -> Float[Tensor, "batch dim"]:
    """Average the vectors of each row; zeros for a row without any."""
    return masked_sum(inputs, mask) / mask.sum(dim=1, keepdim=True).clamp(min=1)


def masked_max(
    inputs: Float[Tensor, "batch tokens dim"], mask: Bool[Tensor, "batch tokens"]
) -> Float[Tensor, "batch dim"]:
    """Take the largest value of each dimension of each row; zeros for a row without vectors."""
    largest = inputs.masked_fill(~mask[:, :, None], float("-inf")).amax(dim=1)
    return largest.masked_fill(~mask.any(dim=1, keepdim=True), 0)


def masked_min(
    inputs: Float[Tensor, "batch tokens dim"], mask: Bool[Tensor, "batch tokens"]
) -> Float[Tensor, "batch dim"]:
    """Take the smallest value of each dimension of each row; zeros for a row without vectors."""
    return -masked_max(-inputs, mask)


def vectors_at(
    inputs: Float[Tensor, "batch tokens dim"], positions: Int[Tensor, " batch"]
) -> Float[Tensor, "batch dim"]:
    """Return the vector at one position of each row."""
    starts = torch.arange(len(inputs), device=inputs.device) * inputs.shape[1]
    return inputs.flatten(0, 1).index_select(0, starts + positions)


class VariationalDropout(nn.Module):
    """Drops the same dimensions at each word of a sequence (Gal and Ghahramani 2016).

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
        return inputs * F.dropout(inputs.new_ones(len(inputs), 1, inputs.shape[2]), self.p)
