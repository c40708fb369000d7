"""Bi-directional attention flow, and with self-attention: the paper's model for SQuAD."""

from __future__ import annotations

from typing import Annotated, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from elmo_framework.config.types import Count, Default, Dim, DropoutRate, Lazy, NumLayersOrZero
from elmo_framework.embedders.text_embedder import TextEmbedder, TokenEmbedder, joined_dim
from elmo_framework.encoders.encoder import Encoder
from elmo_framework.encoders.matrix_attention import MatrixAttention
from elmo_framework.model.head import Head
from elmo_framework.nn.attention import BiAttention, TrilinearSelfAttention, masked_softmax
from elmo_framework.nn.highway import Highway
from elmo_framework.nn.masking import VariationalDropout
from elmo_framework.tasks.question_answering.answer_head import AnswerHead, Pointers
from elmo_framework.tasks.question_answering.no_answer import NoAnswerScore

_TRILINEAR = {"type": "linear", "combination": "x,y,x*y"}


@final
@Head.register("bidaf")
class Bidaf(AnswerHead):
    """Bi-directional attention flow (Seo et al. 2017), with AllenNLP's end of the answer.

    With G the attention between the encoded passage and question, M = modeling_layer(G):
    start = W_1 [G; M], p = softmax(start), m = sum_i p_i M_i;
    end = W_2 [G; span_end_encoder([G; M; m; M * m])].

    The score of `no_answer` reads the inputs of W_1 and W_2, and M.

    Args:
        encoder: encoder of passage and question, each separately.
        modeling_layer: encoder of the passage after attention.
        span_end_encoder: encoder of the passage and the expected start of the answer.
        matrix_attention: scores the words of the passage with those of the question.
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
        matrix_attention: Annotated[Lazy[MatrixAttention], Default(_TRILINEAR)],
        num_highway_layers: NumLayersOrZero = 2,
        output_embedder: TokenEmbedder | None = None,
        dropout: DropoutRate = 0.2,
        max_span_length: Count | None = None,
        no_answer: bool = False,
    ) -> None:
        super().__init__(embedder, output_embedder, max_span_length)
        self.dropout = nn.Dropout(dropout)
        self.highway = Highway(embedder.output_dim, num_highway_layers)
        self.encoder = encoder.build(input_dim=embedder.output_dim)
        encoded_dim = joined_dim(self.encoder.output_dim, output_embedder)
        score = matrix_attention.build(dim=encoded_dim)
        self.attention = BiAttention(encoded_dim, score)
        attended_dim = self.attention.output_dim
        self.modeling_layer = modeling_layer.build(input_dim=attended_dim)
        modeled_dim = self.modeling_layer.output_dim
        # A bias would not change the softmax over words.
        self.start = nn.Linear(attended_dim + modeled_dim, 1, bias=False)
        self.span_end_encoder = span_end_encoder.build(input_dim=attended_dim + 3 * modeled_dim)
        self.end = nn.Linear(attended_dim + self.span_end_encoder.output_dim, 1, bias=False)
        if no_answer:
            self.no_answer = NoAnswerScore(
                self.start.in_features, self.end.in_features, modeled_dim
            )

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
        starts = self.dropout(torch.cat([attended, modeled], dim=2))
        start = self.start(starts).squeeze(2)
        begun = masked_softmax(start, passage_mask)
        beginning = (begun[:, None] @ modeled).expand_as(modeled)
        flowing = torch.cat([attended, modeled, beginning, modeled * beginning], dim=2)
        ended = self.dropout(self.span_end_encoder(flowing, passage_mask))
        ends = self.dropout(torch.cat([attended, ended], dim=2))
        end = self.end(ends).squeeze(2)
        if self.no_answer is None:
            return Pointers(start, end)
        score = self.no_answer((starts, start), (ends, end), modeled, passage_mask)
        return Pointers(start, end, score)


@final
@Head.register("bidaf_self_attention")
class BidafSelfAttention(AnswerHead):
    """Bi-attention, then self-attention (Clark and Gardner 2018; section 4 of the paper).

    With G = relu(W_g bi_attention(passage, question)):
    X = G + relu(W_x self_attention(residual_encoder(G)));
    H = span_start_encoder(X), start = W_1 H; end = W_2 span_end_encoder([X; H]).

    The score of `no_answer` reads the inputs of W_1 and W_2, and X.

    Args:
        encoder: encoder of passage and question, each separately.
        residual_encoder: encoder of the passage before self-attention.
        span_start_encoder: encoder of the passage for the start of the answer.
        span_end_encoder: encoder for its end, which also reads the output of the one before.
        projection_dim: the dimension of G and X.
        dropout: variational dropout rate (the same dimensions at all words of a text) before and
            after `encoder` and `residual_encoder`, and of X.
    """

    def __init__(
        self,
        embedder: TextEmbedder,
        encoder: Lazy[Encoder],
        residual_encoder: Lazy[Encoder],
        span_start_encoder: Lazy[Encoder],
        span_end_encoder: Lazy[Encoder],
        projection_dim: Dim,
        output_embedder: TokenEmbedder | None = None,
        dropout: DropoutRate = 0.2,
        max_span_length: Count | None = 17,
        no_answer: bool = False,
    ) -> None:
        super().__init__(embedder, output_embedder, max_span_length)
        self.dropout = VariationalDropout(dropout)
        self.encoder = encoder.build(input_dim=embedder.output_dim)
        self.attention = BiAttention(joined_dim(self.encoder.output_dim, output_embedder))
        self.attention_projection = nn.Linear(self.attention.output_dim, projection_dim)
        self.residual_encoder = residual_encoder.build(input_dim=projection_dim)
        self.self_attention = TrilinearSelfAttention(self.residual_encoder.output_dim)
        self.residual_projection = nn.Linear(self.self_attention.output_dim, projection_dim)
        self.span_start_encoder = span_start_encoder.build(input_dim=projection_dim)
        begun_dim = self.span_start_encoder.output_dim
        # A bias would not change the softmax over words.
        self.start = nn.Linear(begun_dim, 1, bias=False)
        self.span_end_encoder = span_end_encoder.build(input_dim=projection_dim + begun_dim)
        self.end = nn.Linear(self.span_end_encoder.output_dim, 1, bias=False)
        if no_answer:
            self.no_answer = NoAnswerScore(begun_dim, self.end.in_features, projection_dim)

    def encode(
        self, vectors: Float[Tensor, "batch tokens dim"], mask: Bool[Tensor, "batch tokens"]
    ) -> Float[Tensor, "batch tokens encoded"]:
        encoded: Tensor = self.dropout(self.encoder(self.dropout(vectors), mask))
        return encoded

    def point(
        self,
        passage: Float[Tensor, "batch passage dim"],
        question: Float[Tensor, "batch question dim"],
        passage_mask: Bool[Tensor, "batch passage"],
        question_mask: Bool[Tensor, "batch question"],
    ) -> Pointers:
        attended = self.attention(passage, question, passage_mask, question_mask)
        flowing = torch.relu(self.attention_projection(attended))
        flowing = self.dropout(flowing + self._residual(flowing, passage_mask))
        begun = self.span_start_encoder(flowing, passage_mask)
        ended = self.span_end_encoder(torch.cat([flowing, begun], dim=2), passage_mask)
        start, end = self.start(begun).squeeze(2), self.end(ended).squeeze(2)
        if self.no_answer is None:
            return Pointers(start, end)
        return Pointers(
            start, end, self.no_answer((begun, start), (ended, end), flowing, passage_mask)
        )

    def _residual(self, flowing: Tensor, mask: Tensor) -> Tensor:
        read = self.dropout(self.residual_encoder(self.dropout(flowing), mask))
        return torch.relu(self.residual_projection(self.self_attention(read, mask)))
