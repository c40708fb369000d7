"""Feed-forward network applied to each word."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar, final

from torch import Tensor

from elmo_framework.config.types import Dim, DropoutRate, Local, NumLayers, require_size
from elmo_framework.console import plural
from elmo_framework.encoders.encoder import Encoded, Encoder, Inputs, Mask
from elmo_framework.errors import dotted
from elmo_framework.nn.feedforward import Activation, FeedForward, Layer

ValueT = TypeVar("ValueT")


@dataclass(frozen=True)
class FeedForwardOptions:
    """The layers of a feed-forward network; one value for all layers, or a list with one for each.

    Attributes:
        num_layers: number of layers.
        hidden_dims: their output dimensions.
        activations: their activations.
        dropout: dropout rate after each activation.
        input_dim: if set, must equal the dimension of the input.
    """

    num_layers: NumLayers
    hidden_dims: Dim | list[Dim]
    activations: Activation | list[Activation]
    dropout: DropoutRate | list[DropoutRate] = 0.0
    input_dim: int | None = None

    def __post_init__(self) -> None:
        """Check that lists have `num_layers` items."""
        self._layers()

    def build(self, *, input_dim: int, key: str = "") -> FeedForward:
        """Make the network.

        Args:
            input_dim: inferred.
            key: of these options in the block of the component, for a message about `input_dim`.
        """
        require_size(dotted(key, "input_dim"), self.input_dim, inferred=input_dim)
        return FeedForward(input_dim, self._layers())

    def _layers(self) -> list[Layer]:
        dims = self._each("hidden_dims", self.hidden_dims)
        activations: list[Activation] = self._each("activations", self.activations)
        dropout = self._each("dropout", self.dropout)
        return [Layer(*values) for values in zip(dims, activations, dropout, strict=True)]

    def _each(self, key: str, value: ValueT | list[ValueT]) -> list[ValueT]:
        values = value if isinstance(value, list) else [value] * self.num_layers
        if len(values) != self.num_layers:
            items = plural(len(values), "item")
            raise ValueError(f"{key} has {items}, but num_layers is {self.num_layers}")
        return values


@final
@Encoder.register("feedforward")
class FeedForwardEncoder(Encoder):
    """Applies the same feed-forward network to each vector.

    Args:
        feedforward: the layers of the network.
    """

    def __init__(self, input_dim: Local[int], feedforward: FeedForwardOptions) -> None:
        super().__init__()
        self.input_dim = input_dim
        self.feedforward = feedforward.build(input_dim=input_dim, key="feedforward")
        self.output_dim = self.feedforward.output_dim

    def forward(self, inputs: Inputs, mask: Mask) -> Encoded:
        encoded: Tensor = self.feedforward(inputs)
        return encoded * mask[:, :, None]
