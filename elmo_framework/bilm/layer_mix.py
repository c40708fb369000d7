"""The family of layer mixes: from the layers of a biLM to one vector a word."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Annotated, final

import torch
from annotated_types import Ge, Le
from jaxtyping import Bool, Float
from torch import Tensor, nn

from elmo_framework.config.registry import Registrable
from elmo_framework.config.types import Local
from elmo_framework.console import plural
from elmo_framework.model.part import Part

# Under the root, so that a layer of zeros remains zero (bilm-tf, elmo.py).
EPSILON = 1e-12


class LayerMix(Part, Registrable, ABC):
    """Combines layers into one (section 3.2 of the paper, equation 1).

    A member takes `num_layers: Local[int]`.

    Args:
        num_layers: the number of layers, that of the token encoder included.
    """

    @abstractmethod
    def forward(
        self,
        layers: Float[Tensor, "layers batch tokens dim"],
        mask: Bool[Tensor, "batch tokens"],
    ) -> Float[Tensor, "batch tokens dim"]:
        """Combine the layers; where the mask is false the result is not read."""


@final
@LayerMix.register("scalar_mix")
class ScalarMix(LayerMix):
    """A learned weight for each layer: gamma sum_j s_j h_j with s = softmax(w).

    w starts at zeros and gamma at 1.

    Args:
        layer_norm: whether each layer is normalized first, over all words of a batch together.
        l2: the paper's lambda: `l2` times the sum of w squared is added to the training loss. It
            pulls the weights s towards each other; gamma is left alone.
        scalar_mix_parameters: w, one for each layer. What is given here is not trained, and
            gamma stays 1: `[-9e10, -9e10, 1]` is the top layer of three.
    """

    def __init__(
        self,
        *,
        num_layers: Local[int],
        layer_norm: bool = False,
        l2: Annotated[float, Ge(0)] = 0.0,
        scalar_mix_parameters: list[float] | None = None,
    ) -> None:
        super().__init__()
        is_learned = scalar_mix_parameters is None
        weights = [0.0] * num_layers if scalar_mix_parameters is None else scalar_mix_parameters
        if len(weights) != num_layers:
            raise ValueError(
                f"scalar_mix_parameters is {weights!r} for {plural(num_layers, 'layer')}; "
                "it takes one number for each"
            )
        self.normalizes, self._l2 = layer_norm, l2
        self.scalar_parameters = nn.ParameterList(
            nn.Parameter(torch.tensor([weight]), requires_grad=is_learned) for weight in weights
        )
        self.gamma = nn.Parameter(torch.ones(1), requires_grad=is_learned)

    def forward(
        self,
        layers: Float[Tensor, "layers batch tokens dim"],
        mask: Bool[Tensor, "batch tokens"],
    ) -> Float[Tensor, "batch tokens dim"]:
        if self.normalizes:
            layers = normalize_layers(layers, mask)
        return mix_layers(layers, torch.cat(list(self.scalar_parameters)), self.gamma)

    def penalty(self) -> Tensor:
        trained = [weight for weight in self.scalar_parameters if weight.requires_grad]
        return self._l2 * sum((w.square().sum() for w in trained), self.gamma.new_zeros(()))

    def monitored_values(self) -> dict[str, float]:
        weights = torch.cat(list(self.scalar_parameters)).softmax(dim=0).tolist()
        return {f"s_{layer}": weight for layer, weight in enumerate(weights)} | {
            "gamma": self.gamma.item()
        }


@final
@LayerMix.register("average")
class AverageMix(LayerMix):
    """The same weight for each layer: gamma / (L + 1) sum_j h_j, with gamma learned.

    This is what a `scalar_mix` with a very large `l2` comes to.
    """

    def __init__(self, *, num_layers: Local[int]) -> None:
        super().__init__()
        self._num_layers = num_layers
        self.gamma = nn.Parameter(torch.ones(1))

    def forward(
        self,
        layers: Float[Tensor, "layers batch tokens dim"],
        mask: Bool[Tensor, "batch tokens"],
    ) -> Float[Tensor, "batch tokens dim"]:
        return mix_layers(layers, self.gamma.new_zeros(self._num_layers), self.gamma)

    def monitored_values(self) -> dict[str, float]:
        return {"gamma": self.gamma.item()}


@final
@LayerMix.register("layer")
class SingleLayerMix(LayerMix):
    """One layer alone: gamma h_j, with gamma learned.

    Args:
        index: j; 0 is the token encoder's layer, -1 the top one.
    """

    def __init__(
        self, *, num_layers: Local[int], index: Annotated[int, Ge(-100), Le(100)] = -1
    ) -> None:
        super().__init__()
        if not -num_layers <= index < num_layers:
            raise ValueError(
                f"index is {index} of {plural(num_layers, 'layer')}; "
                f"allowed: {-num_layers} to {num_layers - 1}"
            )
        self.index = index
        self.gamma = nn.Parameter(torch.ones(1))

    def forward(
        self,
        layers: Float[Tensor, "layers batch tokens dim"],
        mask: Bool[Tensor, "batch tokens"],
    ) -> Float[Tensor, "batch tokens dim"]:
        return self.gamma * layers[self.index]

    def monitored_values(self) -> dict[str, float]:
        return {"gamma": self.gamma.item()}


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
    sentence's vectors depend on the others in its batch. Padding is ignored. Layers of reduced
    precision become float32: float16 cannot hold the sums.
    """
    layers = layers.to(torch.promote_types(layers.dtype, torch.float32))
    present = mask[:, :, None].to(layers.dtype)
    count = (present.sum() * layers.shape[-1]).clamp(min=1)
    axes = (1, 2, 3)
    mean = (layers * present).sum(axes, keepdim=True) / count
    variance = ((layers - mean) * present).square().sum(axes, keepdim=True) / count
    return (layers - mean) / torch.sqrt(variance + EPSILON)
