"""Enhanced sequential inference model (Chen et al. 2017)."""

from __future__ import annotations

from typing import Annotated, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from elmo_framework.config.types import Default, DropoutRate, Injected, Lazy
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
from elmo_framework.encoders.matrix_attention import MatrixAttention
from elmo_framework.model.classifier import Classifier, TargetHead
from elmo_framework.model.head import Head
from elmo_framework.model.regression import RegressionHead
from elmo_framework.nn.attention import soft_alignment
from elmo_framework.nn.masking import VariationalDropout, masked_max, masked_mean
from elmo_framework.nn.packing import Packing
from elmo_framework.tasks.entailment.task import EntailmentTask, PairRegressionTask


class ComparedPair(TargetHead):
    """Aligns two sentences, compares them and pools the comparison (Chen et al. 2017).

        a = encode(premise),  b = encode(hypothesis),  e_ij = score(a_i, b_j)
        a~_i = sum_j softmax_j(e_ij) b_j,  m_i = infer(f([a; a~; a - a~; a * a~]))
        logits = W g([mean m_a; max m_a; mean m_b; max m_b]) + c

    and m_b as m_a; f and g are feed-forward networks, and both sentences share all weights.

    Args:
        embedder: word embeddings.
        encoder: encoder of each sentence.
        projection_feedforward: reduces the dimension of the comparison; f above.
        inference_encoder: encoder of each sentence's comparison with the other; infer above.
        output_feedforward: the layers before the scores; g above.
        matrix_attention: scores the words of one sentence with those of the other; score above.
        output_embedder: vectors appended to the output of the encoder, before alignment: ELMo at
            the output.
        dropout: variational dropout rate (the same dimensions at each word) before each encoder,
            and dropout rate of the input of `output_feedforward`.
        attention_dropout: dropout rate of the comparison, before `projection_feedforward`.
    """

    def __init__(
        self,
        embedder: TextEmbedder,
        encoder: Lazy[Encoder],
        projection_feedforward: FeedForwardOptions,
        inference_encoder: Lazy[Encoder],
        output_feedforward: FeedForwardOptions,
        vocabularies: Injected[Vocabularies],
        matrix_attention: Annotated[Lazy[MatrixAttention], Default("dot_product")],
        output_embedder: TokenEmbedder | None = None,
        dropout: DropoutRate = 0.5,
        attention_dropout: DropoutRate = 0.0,
    ) -> None:
        super().__init__(vocabularies)
        self.embedder, self.output_embedder = embedder, output_embedder
        self.encoder = encoder.build(input_dim=embedder.output_dim)
        encoded_dim = joined_dim(self.encoder.output_dim, output_embedder)
        self.matrix_attention = matrix_attention.build(dim=encoded_dim)
        self.projection_feedforward = projection_feedforward.build(
            input_dim=4 * encoded_dim, key="projection_feedforward"
        )
        self.inference_encoder = inference_encoder.build(
            input_dim=self.projection_feedforward.output_dim
        )
        pooled_dim = 4 * self.inference_encoder.output_dim
        self.output_feedforward = output_feedforward.build(
            input_dim=pooled_dim, key="output_feedforward"
        )
        self.output_logit = nn.Linear(self.output_feedforward.output_dim, self.num_outputs)
        self.variational_dropout = VariationalDropout(dropout)
        self.dropout = nn.Dropout(dropout)
        self.attention_dropout = nn.Dropout(attention_dropout)

    def logits(self, batch: LabeledBatch) -> Float[Tensor, "batch outputs"]:
        text = batch.text
        embedded = self.variational_dropout(self.embedder(text))
        encoded = concatenate(self.encoder(embedded, text.mask), self.output_embedder, text)
        # Packed, as this is the largest product and up to half of its positions are padding.
        packing = Packing.of(text.mask_on_cpu).to(text.mask.device)
        aligned = _aligned(encoded, text.mask, self.matrix_attention)
        words = packing.pack(encoded), packing.pack(aligned)
        projected = self.projection_feedforward(self.attention_dropout(_compared(*words)))
        inferred = self.inference_encoder(
            self.variational_dropout(packing.unpack(projected)), text.mask
        )
        pools = [pool(inferred, text.mask) for pool in (masked_mean, masked_max)]
        premise, hypothesis = torch.cat(pools, dim=1).chunk(2)
        hidden = self.output_feedforward(self.dropout(torch.cat([premise, hypothesis], dim=1)))
        logits: Tensor = self.output_logit(hidden)
        return logits


@final
@Head.register("esim")
class Esim(ComparedPair, Classifier):
    """Predicts one label for each pair: p = softmax(logits)."""

    task = EntailmentTask()


@final
@Head.register("esim_regression")
class EsimRegression(ComparedPair, RegressionHead):
    """Predicts a number for each pair, such as their relatedness: mean + deviation * logit."""

    task = PairRegressionTask()


def _aligned(
    encoded: Float[Tensor, "sentences tokens dim"],
    mask: Bool[Tensor, "sentences tokens"],
    score: MatrixAttention,
) -> Float[Tensor, "sentences tokens dim"]:
    """Return for each word the aligned vector of the other sentence of its pair."""
    (premise, hypothesis), (premise_mask, hypothesis_mask) = encoded.chunk(2), mask.chunk(2)
    return torch.cat(soft_alignment(premise, premise_mask, hypothesis, hypothesis_mask, score))


def _compared(
    words: Float[Tensor, "words dim"], aligned: Float[Tensor, "words dim"]
) -> Float[Tensor, "words compared"]:
    """Concatenate each word with its aligned vector, their difference and their product."""
    return torch.cat([words, aligned, words - aligned, words * aligned], dim=1)
