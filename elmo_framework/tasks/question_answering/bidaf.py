"""Bi-directional attention flow."""

from __future__ import annotations

from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from elmo_framework.config.types import Count, DropoutRate, Lazy, NumLayersOrZero
from elmo_framework.embedders.text_embedder import TextEmbedder, TokenEmbedder, joined_dim
from elmo_framework.encoders.encoder import Encoder
from elmo_framework.model.head import Head
from elmo_framework.nn.attention import BiAttention, masked_softmax
from elmo_framework.nn.highway import Highway
from elmo_framework.tasks.question_answering.answer_head import AnswerHead, Pointers


@final
@Head.register("bidaf")
class Bidaf(AnswerHead):
    """Bi-directional attention flow (Seo et al. 2017), with AllenNLP's end of the answer.

    With G the attention between the encoded passage and question, M = modeling_layer(G):
    start = W_1 [G; M], p = softmax(start), m = sum_i p_i M_i;
    end = W_2 [G; span_end_encoder([G; M; m; M * m])].

    Args:
        encoder: encoder of passage and question, each separately.
        modeling_layer: encoder of the passage after attention.
        span_end_encoder: encoder of the passage and the expected start of the answer.
        num_highway_layers: number of highway layers between the embedder and the encoder.
        dropout: dropout rate after each encoder and before the two linear layers that score the
            words.
    """

    def __init__(
        self,
        embedder: TextEmbedder,
        encoder: Lazy[Encoder],
        modeling_layer: Lazy[Encoder],
        span_end_encoder: Lazy[Encoder],
        num_highway_layers: NumLayersOrZero = 2,
        output_embedder: TokenEmbedder | None = None,
        dropout: DropoutRate = 0.2,
        max_span_length: Count | None = None,
    ) -> None:
        super().__init__(embedder, output_embedder, max_span_length)
        self.dropout = nn.Dropout(dropout)
        self.highway = Highway(embedder.output_dim, num_highway_layers)
        self.encoder = encoder.build(input_dim=embedder.output_dim)
        self.attention = BiAttention(joined_dim(self.encoder.output_dim, output_embedder))
        attended_dim = self.attention.output_dim
        self.modeling_layer = modeling_layer.build(input_dim=attended_dim)
        modeled_dim = self.modeling_layer.output_dim
        # A bias would not change the softmax over words.
        self.start = nn.Linear(attended_dim + modeled_dim, 1, bias=False)
        self.span_end_encoder = span_end_encoder.build(input_dim=attended_dim + 3 * modeled_dim)
        self.end = nn.Linear(attended_dim + self.span_end_encoder.output_dim, 1, bias=False)

    def encode(
        self, vectors: Float[Tensor, "batch tokens dim"], mask: Bool[Tensor, "batch tokens"]
    ) -> Float[Tensor, "batch tokens encoded"]:
        encoded: Tensor = self.dropout(self.encoder(self.highway(vectors), mask))
        return encoded

    def point(
        self,
        passage: Float[Tensor, "batch passage dim"],
        question: Float[Tensor, "batch question dim"],
        passage_mask: Bool[Tensor, "batch passage"],
        question_mask: Bool[Tensor, "batch question"],
    ) -> Pointers:
        attended = self.attention(passage, question, passage_mask, question_mask)
        modeled = self.dropout(self.modeling_layer(attended, passage_mask))
        start = self.start(self.dropout(torch.cat([attended, modeled], dim=2))).squeeze(2)
        begun = masked_softmax(start, passage_mask)
        beginning = (begun[:, None] @ modeled).expand_as(modeled)
        flowing = torch.cat([attended, modeled, beginning, modeled * beginning], dim=2)
        ended = self.dropout(self.span_end_encoder(flowing, passage_mask))
        end = self.end(self.dropout(torch.cat([attended, ended], dim=2))).squeeze(2)
        return start, end
