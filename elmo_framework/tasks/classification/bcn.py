"""Biattentive classification network (McCann et al. 2017), and its output layers."""

from __future__ import annotations

from collections import OrderedDict
from typing import Annotated, final

import torch
from annotated_types import Gt, Le
from jaxtyping import Float
from torch import Tensor, nn

from elmo_framework.config.registry import Registrable
from elmo_framework.config.types import (
    MAX_WIDTH,
    Dim,
    DropoutRate,
    Injected,
    Lazy,
    Local,
    NumLayers,
)
from elmo_framework.console import plural
from elmo_framework.data.labels import LabeledBatch
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.embedders.text_embedder import (
    TextEmbedder,
    TokenEmbedder,
    concatenate,
    joined_dim,
)
from elmo_framework.encoders.encoder import Encoder
from elmo_framework.encoders.feedforward import FeedForwardOptions
from elmo_framework.encoders.pooler import SelfAttentivePooler
from elmo_framework.model.classifier import Classifier
from elmo_framework.model.head import Head
from elmo_framework.model.part import Part
from elmo_framework.nn.attention import self_alignment
from elmo_framework.nn.feedforward import Activation, FeedForward, Layer
from elmo_framework.nn.masking import masked_max, masked_mean, masked_min
from elmo_framework.tasks.classification.task import TextClassificationTask

_NUM_POOLS = 4


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


@final
@Head.register("bcn")
class BiattentiveClassifier(Classifier):
    """Encodes a text, aligns it with itself, and pools it in four ways (McCann et al. 2017, 5.3).

        X = encode(f(embed(x_1 ... x_n))),  C = softmax(X X^T) X
        Z = integrate([X; X - C; X * C])
        logits = g([max Z; mean Z; min Z; sum_i beta_i z_i]),  beta = softmax(Z v)

    Args:
        embedder: word embeddings.
        encoder: encoder of the words before alignment.
        integrator: encoder of the words together with their alignments.
        output_layer: scores the labels of the pooled vector.
        output_embedder: vectors appended to the output of the integrator: ELMo at the output,
            after the attention as in the paper.
        pre_encode_feedforward: transforms each word's vector before the encoder; null for none.
        embedding_dropout: dropout rate of the word embeddings.
        integrator_dropout: dropout rate of the four pools.
    """

    task = TextClassificationTask()

    def __init__(
        self,
        embedder: TextEmbedder,
        encoder: Lazy[Encoder],
        integrator: Lazy[Encoder],
        output_layer: Lazy[OutputLayer],
        vocabularies: Injected[Vocabularies],
        output_embedder: TokenEmbedder | None = None,
        pre_encode_feedforward: FeedForwardOptions | None = None,
        embedding_dropout: DropoutRate = 0.0,
        integrator_dropout: DropoutRate = 0.0,
    ) -> None:
        super().__init__(vocabularies)
        dim = embedder.output_dim
        self.embedder, self.output_embedder = embedder, output_embedder
        self.embedding_dropout = nn.Dropout(embedding_dropout)
        self.pre_encode_feedforward = (
            None
            if pre_encode_feedforward is None
            else pre_encode_feedforward.build(input_dim=dim, key="pre_encode_feedforward")
        )
        read_dim = (
            dim if self.pre_encode_feedforward is None else self.pre_encode_feedforward.output_dim
        )
        self.encoder = encoder.build(input_dim=read_dim)
        self.integrator = integrator.build(input_dim=3 * self.encoder.output_dim)
        integrated_dim = joined_dim(self.integrator.output_dim, output_embedder)
        self.integrator_dropout = nn.Dropout(integrator_dropout)
        self.self_attentive = SelfAttentivePooler(integrated_dim)
        self.output_layer = output_layer.build(
            input_dim=_NUM_POOLS * integrated_dim, num_labels=self.num_labels
        )

    def logits(self, batch: LabeledBatch) -> Float[Tensor, "batch labels"]:
        text = batch.text
        embedded = self.embedding_dropout(self.embedder(text))
        if self.pre_encode_feedforward is not None:
            embedded = self.pre_encode_feedforward(embedded)
        encoded = self.encoder(embedded, text.mask)
        aligned = self_alignment(encoded, text.mask)
        compared = torch.cat([encoded, encoded - aligned, encoded * aligned], dim=2)
        integrated = concatenate(self.integrator(compared, text.mask), self.output_embedder, text)
        pools = masked_max, masked_mean, masked_min, self.self_attentive
        pooled = torch.cat([pool(integrated, text.mask) for pool in pools], dim=1)
        logits: Tensor = self.output_layer(self.integrator_dropout(pooled))
        return logits
