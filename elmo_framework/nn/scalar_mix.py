"""Weighted sum of layers, and the normalization that can precede it."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

# Under the root, so that a layer of zeros remains zero (bilm-tf, elmo.py).
_EPSILON = 1e-12


def mix_layers(
    layers: Float[Tensor, "layers batch tokens dim"],
    weights: Float[Tensor, " layers"],
    gamma: Float[Tensor, " 1"],
) -> Float[Tensor, "batch tokens dim"]:
    """Return gamma sum_j softmax(weights)_j h_j (section 3.2 of the paper, equation 1).

    The sum has the precision of the weights, whatever that of the layers.
    """
    mixed: Tensor = torch.tensordot(weights.softmax(dim=0), layers.to(weights.dtype), dims=1)
    return gamma * mixed


def normalize_layers(
    layers: Float[Tensor, "layers batch tokens dim"], mask: Bool[Tensor, "batch tokens"]
) -> Float[Tensor, "layers batch tokens dim"]:
    """Normalize each layer to mean 0 and variance 1 over all words and dimensions of the batch.

    As in bilm-tf and AllenNLP, mean and variance are those of a layer, not of a word, so a
    sentence's vectors depend on the others in its batch. Padding is ignored.
    """
    present = mask[:, :, None].to(layers.dtype)
    count = (present.sum() * layers.shape[-1]).clamp(min=1)
    axes = (1, 2, 3)
    mean = (layers * present).sum(axes, keepdim=True) / count
    variance = ((layers - mean) * present).square().sum(axes, keepdim=True) / count
    return (layers - mean) / torch.sqrt(variance + _EPSILON)
