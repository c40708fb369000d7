"""The layers of a batch of sentences, from an encoder to a mix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from elmo_framework.bilm.context_layers import Direction, State

NUM_BOUNDARIES = 2
"""Steps that a sentence has in addition to its words: `<S>` and `</S>`."""

LayerState: TypeAlias = Mapping[Direction, State]
"""The state that each direction carries from batch to batch."""


@dataclass(frozen=True, slots=True)
class LayerOutput:
    """The layers of a batch of sentences, with the boundaries `<S>` and `</S>` around each.

    Attributes:
        layers: the token encoder's layer, then the context layers; zero at padding. A layer of a
            biLM is the forward direction, then the backward one.
        mask: true at words and boundaries.
        state: after the last step of each row; empty where nothing is carried.
    """

    layers: Float[Tensor, "layers batch tokens dim"]
    mask: Bool[Tensor, "batch tokens"]
    state: LayerState


def joined(outputs: Sequence[LayerOutput]) -> LayerOutput:
    """Return the rows of batches that are equally wide as one batch, with the last state."""
    if len(outputs) == 1:
        return outputs[0]
    layers = torch.cat([output.layers for output in outputs], dim=1)
    return LayerOutput(layers, torch.cat([output.mask for output in outputs]), outputs[-1].state)


def without_boundaries(
    vectors: Float[Tensor, "batch tokens dim"], mask: Bool[Tensor, "batch tokens"]
) -> Float[Tensor, "batch words dim"]:
    """Drop `<S>` and `</S>` from vectors with the mask of a `LayerOutput`; zero at padding."""
    # A row's last true place is that of </S>, so the mask of its words is two places shorter.
    return vectors[:, 1:-1].masked_fill(~mask[:, 2:, None], 0)


def framed_mask(mask: Bool[Tensor, "batch tokens"]) -> Bool[Tensor, "batch tokens+2"]:
    """Turn a mask of words into a mask of words and boundaries."""
    steps = torch.arange(mask.shape[1] + NUM_BOUNDARIES, device=mask.device)
    lengths = mask.sum(dim=1, keepdim=True)
    return (steps < lengths + NUM_BOUNDARIES) & (lengths > 0)
