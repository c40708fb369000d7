"""Decomposable attention (Parikh et al. 2016)."""

from __future__ import annotations

from typing import Annotated, final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from elmo_framework.config import Default, Injected, Lazy
from elmo_framework.data import LabeledBatch, Vocabularies
from elmo_framework.embedders import TextEmbedder
from elmo_framework.encoders import Encoder, FeedForwardOptions, MatrixAttention
from elmo_framework.model import Classifier, Head
from elmo_framework.nn import masked_softmax, masked_sum
from elmo_framework.tasks.entailment import EntailmentTask


@final
@Head.register("decomposable_attention")
class DecomposableAttention(Classifier):
    """Aligns the words of two sentences, compares the aligned words and adds the comparisons.

        e_ij = score(f(a_i), f(b_j))
        b~_i = sum_j softmax_j(e_ij) b_j,  a~_j = sum_i softmax_i(e_ij) a_i
        v = [sum_i g([a_i; b~_i]); sum_j g([b_j; a~_j])],  logits = W h(v) + c

    where f, g and h are feed-forward networks (Parikh et al. 2016, equations 1 to 6).

    Args:
        embedder: word embeddings.
        attend_feedforward: transforms the words before their scores; f above.
        compare_feedforward: compares a word with those aligned to it; g above.
        aggregate_feedforward: the layers before the scores of the labels; h above. The layer of
            the labels is added.
        matrix_attention: scores the words of one sentence with those of the other; score above.
        premise_encoder: encoder of the premise, before alignment.
        hypothesis_encoder: encoder of the hypothesis; by default, that of the premise.
    """

    task = EntailmentTask()

    def __init__(
        self,
        embedder: TextEmbedder,
        attend_feedforward: FeedForwardOptions,
        compare_feedforward: FeedForwardOptions,
        aggregate_feedforward: FeedForwardOptions,
        vocabularies: Injected[Vocabularies],
        matrix_attention: Annotated[Lazy[MatrixAttention], Default("dot_product")],
        premise_encoder: Lazy[Encoder] | None = None,
        hypothesis_encoder: Lazy[Encoder] | None = None,
    ) -> None:
        super().__init__(vocabularies)
        self.embedder = embedder
        self.premise_encoder, self.hypothesis_encoder = (
            None if encoder is None else encoder.build(input_dim=embedder.output_dim)
            for encoder in (premise_encoder, hypothesis_encoder)
        )
        dim, hypothesis_dim = (
            embedder.output_dim if encoder is None else encoder.output_dim
            for encoder in self._encoders()
        )
        if dim != hypothesis_dim:
            raise ValueError(
                f"the premise has dimension {dim} and the hypothesis {hypothesis_dim}; "
                "set the encoders so that both are equal"
            )
        self.attend_feedforward = attend_feedforward.build(input_dim=dim, key="attend_feedforward")
        self.matrix_attention = matrix_attention.build(dim=self.attend_feedforward.output_dim)
        self.compare_feedforward = compare_feedforward.build(
            input_dim=2 * dim, key="compare_feedforward"
        )
        self.aggregate_feedforward = aggregate_feedforward.build(
            input_dim=2 * self.compare_feedforward.output_dim, key="aggregate_feedforward"
        )
        self.output_logit = nn.Linear(self.aggregate_feedforward.output_dim, self.num_outputs)

    def _encoders(self) -> tuple[Encoder | None, Encoder | None]:
        return self.premise_encoder, self.hypothesis_encoder or self.premise_encoder

    def logits(self, batch: LabeledBatch) -> Float[Tensor, "batch outputs"]:
        # The batch has all premises first, then all hypotheses. Each is as long as its longest.
        texts, half = batch.text.words, len(batch.examples)
        sizes = [max(1, *map(len, rows)) for rows in (texts[:half], texts[half:])]
        halves = zip(self.embedder(batch.text).chunk(2), batch.text.mask.chunk(2), strict=True)
        cropped = [
            (vectors[:, :size], own[:, :size])
            for (vectors, own), size in zip(halves, sizes, strict=True)
        ]
        masks = of_premise, of_hypothesis = [own for _, own in cropped]
        premise, hypothesis = (
            vectors if encoder is None else encoder(vectors, own)
            for encoder, (vectors, own) in zip(self._encoders(), cropped, strict=True)
        )
        scores = self.matrix_attention(  # batch premise hypothesis
            self.attend_feedforward(premise), self.attend_feedforward(hypothesis)
        )
        for_premise = masked_softmax(scores, of_hypothesis[:, None]) @ hypothesis
        for_hypothesis = masked_softmax(scores.transpose(1, 2), of_premise[:, None]) @ premise
        compared = [
            self.compare_feedforward(torch.cat(pair, dim=2))
            for pair in ((premise, for_premise), (hypothesis, for_hypothesis))
        ]
        summed = torch.cat([masked_sum(*pair) for pair in zip(compared, masks, strict=True)], dim=1)
        logits: Tensor = self.output_logit(self.aggregate_feedforward(summed))
        return logits
