"""Semantic role labeler of He et al. (2017), optionally with ELMo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, final

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from elmo_framework.config.types import Dim, DropoutRate, Injected, Lazy
from elmo_framework.data.span_probabilities import TagScores, label_probabilities
from elmo_framework.data.tagging import allowed_transitions, tag_annotations
from elmo_framework.data.vocabulary import Vocabularies, Vocabulary
from elmo_framework.embedders.text_embedder import (
    TextEmbedder,
    TokenEmbedder,
    any_carries_state,
    joined_dim,
)
from elmo_framework.encoders.encoder import Encoder
from elmo_framework.metrics.srl import Proposition
from elmo_framework.model.head import Head, LogitsOutput, mean_logits
from elmo_framework.nn.crf import Constraints, best_sequences, penalties
from elmo_framework.tasks.srl.example import UNCOUNTED, SrlBatch, tagged_predicates
from elmo_framework.tasks.srl.summed_decoding import tags_of_largest_sums
from elmo_framework.tasks.srl.task import SrlTask


@final
@Head.register("srl")
class SemanticRoleLabeler(Head[SrlBatch]):
    """Encodes a sentence once for each predicate and tags the predicate's arguments.

    h = encoder([x_k; e_(k is the predicate)]);  p(y_k) = softmax(W h_k + b), and the arguments are
    the sequence of BIO tags with the largest product of p (He et al. 2017, section 2).

    The loss is the negative log-likelihood of the tags, summed over the words of a predicate's
    sentence and averaged over the predicates of a batch, as in the code of He et al. The words of
    a sentence are embedded once for all its predicates in a batch.

    Args:
        embedder: word embeddings.
        encoder: encoder of the word embeddings, concatenated with the predicate indicator.
        vocabularies: counts of the training data; its labels are the tags.
        output_embedder: vectors appended to the output of the encoder: ELMo at the output.
        binary_feature_dim: the dimension of the predicate indicator.
        embedding_dropout: dropout rate of the word embeddings.
        decoding: what is added up for a sequence of tags: their log probabilities, or, as in
            AllenNLP, their probabilities.
        predicate_words: which words the predicate indicator marks: the `first` of the predicate,
            or, as in AllenNLP, all that are `tagged` as V in the data; of inputs without tags the
            first alone.
        loss_reduction: the loss of a predicate is the `sum` of those of its words, or, as in
            AllenNLP, their `mean`.
    """

    task = SrlTask()
    start: Tensor
    inner: Tensor
    end: Tensor

    def __init__(
        self,
        embedder: TextEmbedder,
        encoder: Lazy[Encoder],
        vocabularies: Injected[Vocabularies],
        output_embedder: TokenEmbedder | None = None,
        binary_feature_dim: Dim = 100,
        embedding_dropout: DropoutRate = 0.0,
        decoding: Literal["log_probabilities", "probabilities"] = "log_probabilities",
        predicate_words: Literal["first", "tagged"] = "first",
        loss_reduction: Literal["sum", "mean"] = "sum",
    ) -> None:
        super().__init__()
        self._decoding, self._predicate_words = decoding, predicate_words
        self._loss_reduction = loss_reduction
        self.labels: Vocabulary = vocabularies.required_labels()
        self.embedder = embedder
        self.predicate_embedding = nn.Embedding(2, binary_feature_dim)
        self.encoder = encoder.build(input_dim=embedder.output_dim + binary_feature_dim)
        self.output_embedder = output_embedder
        self._carries_state = any_carries_state(embedder, output_embedder)
        self.dropout = nn.Dropout(embedding_dropout)
        output_dim = joined_dim(self.encoder.output_dim, output_embedder)
        self.projection = nn.Linear(output_dim, len(self.labels))
        nn.init.orthogonal_(self.projection.weight)
        constraints = Constraints(*map(torch.tensor, allowed_transitions(self.labels.items, "BIO")))
        for name, added in penalties(constraints, len(self.labels)).items():
            self.register_buffer(name, added, persistent=False)

    def forward(self, batch: SrlBatch) -> LogitsOutput:
        text, rows = batch.text, batch.sentence_ids
        if self._carries_state:
            # A sentence is read again for each predicate, from another state, as in AllenNLP.
            text, rows = text.rows(rows), torch.arange(len(rows), device=rows.device)
        words = self.dropout(self.embedder(text)).index_select(0, rows)
        marked = batch.is_predicate
        if self._predicate_words == "tagged":
            marked = tagged_predicates(batch)
        marks = self.predicate_embedding(marked)
        encoded = self.encoder(torch.cat([words, marks], dim=2), batch.mask)
        if self.output_embedder is not None:
            vectors = self.output_embedder(text).index_select(0, rows)
            encoded = torch.cat([encoded, vectors], dim=2)
        logits = self.projection(encoded)
        if batch.tags is None:
            return LogitsOutput(loss=None, logits=logits)
        losses = _losses(logits, batch.tags)
        if self._loss_reduction == "mean":
            losses = losses / (batch.tags != UNCOUNTED).sum(dim=1).clamp(min=1)
        by_example = losses.new_zeros(len(batch.examples)).index_add(0, batch.example_ids, losses)
        return LogitsOutput(loss=losses.mean(), example_losses=by_example, logits=logits)

    def mean_output(
        self, outputs: Sequence[LogitsOutput], heads: Sequence[Head[Any]]
    ) -> LogitsOutput:
        return LogitsOutput(loss=None, logits=mean_logits(outputs, heads))

    def predict(self, output: LogitsOutput, batch: SrlBatch) -> list[tuple[Proposition, ...]]:
        rows = ([self.labels.items[tag] for tag in row] for row in self._best(output, batch))
        return [
            tuple(Proposition(place, tuple(next(rows)[: len(example.words)])) for place in places)
            for example, places in zip(batch.examples, batch.predicates, strict=True)
        ]

    def _best(self, output: LogitsOutput, batch: SrlBatch) -> list[list[int]]:
        if self._decoding == "probabilities":
            return tags_of_largest_sums(
                output.logits.softmax(dim=2),
                batch.mask.sum(dim=1).tolist(),
                start=self.start,
                transitions=self.inner,
            )
        # log p differs from the logits by a constant per word, which does not change the maximum.
        best = best_sequences(
            output.logits.to(self.start.dtype),
            batch.mask,
            start=self.start,
            transitions=self.inner,
            end=self.end,
        )
        rows: list[list[int]] = best.tolist()
        return rows

    def annotation_probabilities(
        self,
        output: LogitsOutput,
        batch: SrlBatch,
        predictions: Sequence[Sequence[Proposition]],
        *,
        top_k: int = 1,
    ) -> list[Sequence[Mapping[str, float]]]:
        bounds = [each.double().cpu().numpy() for each in (self.start, self.inner, self.end)]
        rows = iter(output.logits.detach().double().cpu().numpy())
        results = list[Sequence[Mapping[str, float]]]()
        for propositions in predictions:
            probabilities: list[Mapping[str, float]] = []
            for place, tags in propositions:
                scores = TagScores(next(rows)[: len(tags)], *bounds)
                if place is not None and tags:
                    spans = tag_annotations(tags)
                    probabilities += label_probabilities(
                        scores, self.labels.items, spans, top_k=top_k
                    )
            results.append(probabilities)
        return results


def _losses(
    logits: Float[Tensor, "predicates tokens tags"], tags: Tensor
) -> Float[Tensor, " predicates"]:
    each = functional.cross_entropy(
        logits.flatten(0, 1), tags.flatten(), ignore_index=UNCOUNTED, reduction="none"
    )
    return each.view_as(tags).sum(dim=1)
