"""Output layers: from one vector per text to the scores of its labels."""

from __future__ import annotations

from collections import OrderedDict
from typing import Annotated, final

from annotated_types import Gt, Le
from torch import nn

from elmo_framework.config.registry import Registrable
from elmo_framework.config.types import MAX_WIDTH, Dim, DropoutRate, Local, NumLayers
from elmo_framework.console import plural
from elmo_framework.encoders.feedforward import FeedForwardOptions
from elmo_framework.model.part import Part
from elmo_framework.nn.feedforward import Activation, FeedForward, Layer


@final
class OutputLayer(Part, nn.Sequential, Registrable):
    """Scores labels: layers from "batch input_dim" to "batch num_labels".

    A member is a function with `input_dim: Local[int]` and `num_labels: Local[int]`.
    """

    default_member = "feedforward"


@OutputLayer.register("feedforward")
def feedforward(
    input_dim: Local[int],
    num_labels: Local[int],
    num_layers: NumLayers,
    hidden_dims: Dim | list[Dim],
    activations: Activation | list[Activation],
    dropout: DropoutRate | list[DropoutRate] = 0.0,
) -> OutputLayer:
    """Linear layers with activations, then a projection to the labels.

    Args:
        input_dim: the dimension of the input vectors.
        num_labels: number of labels.
        num_layers: number of layers before the last.
        hidden_dims: their dimensions; one for all layers or one per layer, as below.
        activations: the activation after each.
        dropout: the dropout rate after each.
    """
    options = FeedForwardOptions(num_layers, hidden_dims, activations, dropout)
    layers = options.build(input_dim=input_dim)
    projection = nn.Linear(layers.output_dim, num_labels)
    return OutputLayer(OrderedDict(feedforward=layers, projection=projection))


@OutputLayer.register("maxout")
def maxout(
    input_dim: Local[int],
    num_labels: Local[int],
    output_dims: list[Dim],
    pool_sizes: Annotated[int, Gt(1), Le(MAX_WIDTH)] = 4,
    dropout: DropoutRate | list[DropoutRate] = 0.0,
) -> OutputLayer:
    """Maxout layers, the last with one output per label (McCann et al. 2017, section 5.3).

    Unlike theirs, and like AllenNLP's, these have no batch normalization.

    Args:
        input_dim: the dimension of the input vectors.
        num_labels: number of labels.
        output_dims: the dimensions of the layers before the last.
        pool_sizes: number of linear outputs of which each layer takes the maximum.
        dropout: the dropout rate after each layer except the last; one for all of them or one
            per layer.
    """
    rates = dropout if isinstance(dropout, list) else [dropout] * len(output_dims)
    if len(rates) != len(output_dims):
        raise ValueError(
            f"dropout has {plural(len(rates), 'item')}, output_dims {len(output_dims)}"
        )
    if len(output_dims) > 1 and output_dims[-1] == num_labels:
        raise ValueError(
            f"output_dims ends with {num_labels}, the number of labels; a last layer of that "
            "width is added: leave it out"
        )
    layers = [
        Layer(dim, "linear", rate, pool_sizes)
        for dim, rate in zip([*output_dims, num_labels], [*rates, 0.0], strict=True)
    ]
    return OutputLayer(OrderedDict(maxout=FeedForward(input_dim, layers)))
