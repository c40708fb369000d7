"""The family of layer mixes: from the layers of a biLM to one vector a word."""

from __future__ import annotations

from abc import ABC, abstractmethod

from jaxtyping import Bool, Float
from torch import Tensor, nn

from elmo_framework.common.registry import Registrable


class LayerMix(nn.Module, Registrable, ABC):
    """Combines layers into one (section 3.2 of the paper, equation 1).

    A member takes `num_layers: Local[int]`: how many layers it will be given.
    """

    @abstractmethod
    def forward(
        self,
        layers: Float[Tensor, "layers batch tokens dim"],
        mask: Bool[Tensor, "batch tokens"],
    ) -> Float[Tensor, "batch tokens dim"]:
        """Combine the layers; where the mask is false the result is not read."""
