"""The family of context layers: what reads a sentence in one direction after the other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Literal, NamedTuple, TypeAlias

from jaxtyping import Bool, Float
from torch import Tensor, nn

from elmo_framework.common.registry import Registrable

Direction: TypeAlias = Literal["forward", "backward"]
State: TypeAlias = tuple[Tensor, ...]
"""What one direction carries from batch to batch: tensors whose dimension 0 is the batch."""


class Reading(NamedTuple):
    """What one direction computes.

    Attributes:
        layers: "layers batch tokens dim", in reading order, zero at padding.
        state: after the last word of each row.
    """

    layers: Float[Tensor, "layers batch tokens dim"]
    state: State


class ContextLayers(nn.Module, Registrable, ABC):
    """Reads word vectors in one direction; the two directions share nothing.

    Attributes:
        num_layers: how many layers each direction gives.
        output_dim: the width of one direction's layer.
    """

    num_layers: int
    output_dim: int

    @abstractmethod
    def read(
        self,
        inputs: Float[Tensor, "batch tokens dim"],
        mask: Bool[Tensor, "batch tokens"],
        *,
        direction: Direction,
        state: State | None = None,
    ) -> Reading:
        """Read rows from their first word to their last.

        Args:
            inputs: word vectors in reading order: for the backward direction the caller has
                reversed each row within its length.
            mask: true where a word stands; a row's words come first.
            direction: whose weights are used.
            state: what the same rows ended with before; zeros when None.
        """
