"""The enhanced sequential inference model."""

from __future__ import annotations

from typing import Annotated, final

import torch
from annotated_types import Ge, Lt
from jaxtyping import Bool, Float
from torch import Tensor, nn

from elmo_framework.config.types import Injected, Lazy
from elmo_framework.data.labelled import LabelledBatch
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.embedders.concat import concatenate, joined_dim
from elmo_framework.embedders.text_embedder import TextEmbedder
from elmo_framework.embedders.token_embedder import TokenEmbedder
from elmo_framework.encoders.encoder import Encoder
from elmo_framework.encoders.feedforward import FeedForwardOptions
from elmo_framework.model.classifier import Classifier
from elmo_framework.model.head import Head
from elmo_framework.model.initializer import Initializers
from elmo_framework.model.regularizer import Regularizers
from elmo_framework.nn.masking import masked_max, masked_mean
from elmo_framework.nn.packing import Packing
from elmo_framework.nn.soft_alignment import soft_alignment
from elmo_framework.nn.variational_dropout import VariationalDropout
from elmo_framework.tasks.entailment.task import EntailmentTask


@final
@Head.register("esim")
class Esim(Classifier[LabelledBatch]):
    """Aligns two sentences and infers from what they say of each other (Chen et al. 2017).

        a = encode(premise),  b = encode(hypothesis),  e_ij = a_i b_j
        a~_i = sum_j softmax_j(e_ij) b_j,  m_i = infer(f([a; a~; a - a~; a * a~]))
        logits = W g([mean m_a; max m_a; mean m_b; max m_b]) + c

    and m_b as m_a; f and g are feed-forward networks, and both sentences share all weights.

    Args:
        embedder: gives each word its vector.
        encoder: reads each sentence.
        projection_feedforward: makes what is compared narrower; f above.
        inference_encoder: reads each sentence beside what it is aligned with.
        output_feedforward: the layers before the labels; g above.
        output_embedder: gives vectors that stand after those of the encoder, before the
            sentences are aligned: ELMo at the output.
        dropout: the share of values dropped from the vectors before each encoder, the same
            values at each word, and from what `output_feedforward` is given.
        attention_dropout: the share of values dropped from what is compared, before
            `projection_feedforward`.
    """

    task = EntailmentTask()

    def __init__(
        self,
        embedder: TextEmbedder,
        encoder: Lazy[Encoder],
        projection_feedforward: FeedForwardOptions,
        inference_encoder: Lazy[Encoder],
        output_feedforward: FeedForwardOptions,
        vocabularies: Injected[Vocabularies],
        output_embedder: TokenEmbedder | None = None,
        dropout: Annotated[float, Ge(0), Lt(1)] = 0.5,
        attention_dropout: Annotated[float, Ge(0), Lt(1)] = 0.0,
        initializer: Initializers | None = None,
        regularizer: Regularizers | None = None,
    ) -> None:
        super().__init__(vocabularies)
        self.embedder, self.output_embedder = embedder, output_embedder
        self.encoder = encoder.build(input_dim=embedder.output_dim)
        encoded_dim = joined_dim(self.encoder.output_dim, output_embedder)
        self.projection_feedforward = projection_feedforward.build(input_dim=4 * encoded_dim)
        self.inference_encoder = inference_encoder.build(
            input_dim=self.projection_feedforward.output_dim
        )
        pooled_dim = 4 * self.inference_encoder.output_dim
        self.output_feedforward = output_feedforward.build(input_dim=pooled_dim)
        self.output_logit = nn.Linear(self.output_feedforward.output_dim, self.num_labels)
        self.variational_dropout = VariationalDropout(dropout)
        self.dropout = nn.Dropout(dropout)
        self.attention_dropout = nn.Dropout(attention_dropout)
        self.initialize(initializer, regularizer)

    def logits(self, batch: LabelledBatch) -> Float[Tensor, "batch labels"]:
        """Score the labels of each pair."""
        text = batch.text
        embedded = self.variational_dropout(self.embedder(text))
        encoded = concatenate(self.encoder(embedded, text.mask), self.output_embedder, text)
        # Without padding: this is the widest product, and half the places may be empty.
        packing = Packing.of(text.mask)
        words = packing.pack(encoded), packing.pack(_aligned(encoded, text.mask))
        projected = self.projection_feedforward(self.attention_dropout(_compared(*words)))
        inferred = self.inference_encoder(
            self.variational_dropout(packing.unpack(projected)), text.mask
        )
        pools = [pool(inferred, text.mask) for pool in (masked_mean, masked_max)]
        premise, hypothesis = torch.cat(pools, dim=1).chunk(2)
        hidden = self.output_feedforward(self.dropout(torch.cat([premise, hypothesis], dim=1)))
        logits: Tensor = self.output_logit(hidden)
        return logits


def _aligned(
    encoded: Float[Tensor, "sentences tokens dim"], mask: Bool[Tensor, "sentences tokens"]
) -> Float[Tensor, "sentences tokens dim"]:
    """Return what each word is aligned with in the other sentence of its pair."""
    (premise, hypothesis), (premise_mask, hypothesis_mask) = encoded.chunk(2), mask.chunk(2)
    return torch.cat(soft_alignment(premise, premise_mask, hypothesis, hypothesis_mask))


def _compared(
    words: Float[Tensor, "words dim"], aligned: Float[Tensor, "words dim"]
) -> Float[Tensor, "words compared"]:
    """Put beside each word what it is aligned with, and how they differ."""
    return torch.cat([words, aligned, words - aligned, words * aligned], dim=1)
