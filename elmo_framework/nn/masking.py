"""Pooling of sequences of vectors; padding is ignored."""

from __future__ import annotations

from jaxtyping import Bool, Float
from torch import Tensor


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
