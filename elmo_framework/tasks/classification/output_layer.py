"""The family of layers between one vector of a text and the scores of its labels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Annotated, TypeAlias, final

from annotated_types import Ge, Gt, Le, Lt
from jaxtyping import Float
from torch import Tensor, nn

from elmo_framework.config.registry import Registrable
from elmo_framework.config.types import MAX_WIDTH, Dim, Local, NumLayers
from elmo_framework.console import plural
from elmo_framework.encoders.feedforward import FeedForwardOptions
from elmo_framework.model.part import Part
from elmo_framework.nn.activation import Activation
from elmo_framework.nn.maxout import Maxout, MaxoutLayer

Share: TypeAlias = Annotated[float, Ge(0), Lt(1)]


class OutputLayer(Part, Registrable, ABC):
    """Scores labels; a member takes `input_dim: Local[int]` and `num_labels: Local[int]`."""

    default_member = "feedforward"

    @abstractmethod
    def forward(
        self, inputs: Float[Tensor, "batch input_dim"]
    ) -> Float[Tensor, "batch num_labels"]:
        """Score the labels of each vector."""


@final
@OutputLayer.register("feedforward")
class FeedForwardOutputLayer(OutputLayer):
    """Linear layers with activations, then one as wide as there are labels.

    Args:
        input_dim: the width of the vectors that it will be given.
        num_labels: how many labels are scored.
        num_layers: how many layers come before the last.
        hidden_dims: their widths; one number for all, or one a layer, as with what follows.
        activations: what follows the product of each.
        dropout: the share of values dropped after each.
    """

    def __init__(
        self,
        input_dim: Local[int],
        num_labels: Local[int],
        num_layers: NumLayers,
        hidden_dims: Dim | list[Dim],
        activations: Activation | list[Activation],
        dropout: Share | list[Share] = 0.0,
    ) -> None:
        super().__init__()
        options = FeedForwardOptions(num_layers, hidden_dims, activations, dropout)
        self.feedforward = options.build(input_dim=input_dim)
        self.projection = nn.Linear(self.feedforward.output_dim, num_labels)

    def forward(
        self, inputs: Float[Tensor, "batch input_dim"]
    ) -> Float[Tensor, "batch num_labels"]:
        """Score the labels of each vector."""
        logits: Tensor = self.projection(self.feedforward(inputs))
        return logits


@final
@OutputLayer.register("maxout")
class MaxoutOutputLayer(OutputLayer):
    """Maxout layers, the last as wide as there are labels (McCann et al. 2017, section 5.3).

    Theirs normalise each batch as well; these, like AllenNLP's, do not.

    Args:
        input_dim: the width of the vectors that it will be given.
        num_labels: how many labels are scored.
        output_dims: the widths of the layers before the last.
        pool_sizes: of how many products the largest is kept, in every layer.
        dropout: the share of values dropped after each layer but the last; one number for all of
            them, or one a layer.
    """

    def __init__(
        self,
        input_dim: Local[int],
        num_labels: Local[int],
        output_dims: list[Dim],
        pool_sizes: Annotated[int, Gt(1), Le(MAX_WIDTH)] = 4,
        dropout: Share | list[Share] = 0.0,
    ) -> None:
        super().__init__()
        shares = dropout if isinstance(dropout, list) else [dropout] * len(output_dims)
        if len(shares) != len(output_dims):
            raise ValueError(
                f"dropout has {plural(len(shares), 'item')}, output_dims {len(output_dims)}"
            )
        if len(output_dims) > 1 and output_dims[-1] == num_labels:
            raise ValueError(
                f"output_dims ends with {num_labels}, the number of labels; a last layer of that "
                "width is added: leave it out"
            )
        layers = [
            MaxoutLayer(dim, pool_sizes, share)
            for dim, share in zip([*output_dims, num_labels], [*shares, 0.0], strict=True)
        ]
        self.maxout = Maxout(input_dim, layers)

    def forward(
        self, inputs: Float[Tensor, "batch input_dim"]
    ) -> Float[Tensor, "batch num_labels"]:
        """Score the labels of each vector."""
        logits: Tensor = self.maxout(inputs)
        return logits
