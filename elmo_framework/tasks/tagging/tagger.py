"""Taggers: score the tags of each word, and decode them one by one or with a CRF."""

from __future__ import annotations

import logging
from abc import ABC
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, final

import numpy as np
import torch
from annotated_types import Ge, Lt
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from elmo_framework.config.types import DropoutRate, Injected, Lazy, refuse_key
from elmo_framework.data.labels import LabeledBatch
from elmo_framework.data.span_probabilities import TagScores, label_probabilities
from elmo_framework.data.tagging import Scheme, marks_spans, scheme_of, spans, tag_annotations
from elmo_framework.data.text import TextBatch
from elmo_framework.data.vocabulary import Vocabularies, Vocabulary
from elmo_framework.embedders.text_embedder import (
    TextEmbedder,
    TokenEmbedder,
    concatenate,
    joined_dim,
)
from elmo_framework.encoders.encoder import Encoder
from elmo_framework.encoders.feedforward import FeedForwardOptions
from elmo_framework.errors import RunError
from elmo_framework.metrics.calibration import ScoredLabels
from elmo_framework.metrics.metric import Metric, is_over_labels
from elmo_framework.metrics.ratios import ratio
from elmo_framework.model.class_weights import ClassWeights, weights_of_labels
from elmo_framework.model.head import Head, LogitsOutput, label_orders, mean_logits
from elmo_framework.model.model import ModelOutput
from elmo_framework.nn.crf import ConditionalRandomField, mean_crf
from elmo_framework.tasks.tagging.scored_sequences import ScoredSequences
from elmo_framework.tasks.tagging.tag_crf import check_label_encoding, tag_crf
from elmo_framework.tasks.tagging.task import TaggedSentence, TaggingTask

_log = logging.getLogger(__name__)

_NUM_NEAR = 3
_WITHOUT_SPANS = "without_spans"


@final
@dataclass(frozen=True, slots=True)
class _MeanOutput(LogitsOutput):
    """The mean output of several taggers.

    Attributes:
        crf: decodes it; None if each word has the tag with the largest logit.
    """

    crf: ConditionalRandomField | None


class Tagger(Head[LabeledBatch], ABC):
    """Scores the tags of each word with embedders, one or two encoders and a linear layer.

    ELMo can be at the input, in `embedder`; at the output, in `output_embedder`; and with an
    `output_encoder` between two encoders, like the language model of Peters et al. (2017).

    In addition to the scores of the task there is `accuracy3`: the fraction of words whose tag is
    among the three with the highest `logits`. Tags that do not mark spans, such as parts of
    speech, have no overall score of spans.

    Args:
        embedder: word embeddings.
        encoder: encoder of the embedded sentence; null for none.
        vocabularies: counts of the training data; its labels are the tags.
        output_embedder: vectors appended to the output of the encoder: ELMo at the output.
        output_encoder: encoder of the output of `encoder` and `output_embedder`.
        dropout: dropout rate of the vectors before and after each encoder.
        feedforward: layers between the encoders and the scores of the tags, with their own dropout;
            null for none.
        label_encoding: the scheme of the tags; null to infer it from the tags.
    """

    task = TaggingTask()
    crf: ConditionalRandomField | None
    _class_weights: Tensor | None
    _label_smoothing = 0.0

    def __init__(
        self,
        *,
        embedder: TextEmbedder,
        encoder: Lazy[Encoder] | None,
        vocabularies: Vocabularies,
        output_embedder: TokenEmbedder | None,
        output_encoder: Lazy[Encoder] | None,
        dropout: float,
        feedforward: FeedForwardOptions | None = None,
        label_encoding: Scheme | None = None,
    ) -> None:
        super().__init__()
        self.register_buffer("_class_weights", None, persistent=False)
        self.labels: Vocabulary = vocabularies.required_labels()
        tags, begun = self.labels.items, vocabularies.counted("beginnings")
        self.scheme = label_encoding or scheme_of(tags, begun)
        # Tags may violate every scheme, or all be O.
        self._has_spans = self.scheme is not None or bool(spans(self.labels.items))
        self.embedder = embedder
        dim = embedder.output_dim
        self.encoder = None if encoder is None else encoder.build(input_dim=dim)
        self.output_embedder = output_embedder
        self.dropout = nn.Dropout(dropout)
        dim = joined_dim(dim if self.encoder is None else self.encoder.output_dim, output_embedder)
        self.output_encoder = (
            None if output_encoder is None else output_encoder.build(input_dim=dim)
        )
        dim = dim if self.output_encoder is None else self.output_encoder.output_dim
        self.feedforward = (
            None if feedforward is None else feedforward.build(input_dim=dim, key="feedforward")
        )
        dim = dim if self.feedforward is None else self.feedforward.output_dim
        self.projection = nn.Linear(dim, len(self.labels))

    def forward(self, batch: LabeledBatch) -> LogitsOutput:
        logits, mask = self._logits(batch.text), batch.text.mask
        if batch.labels is None:
            return LogitsOutput(loss=None, logits=logits)
        if self.crf is None:
            losses = _mean_losses(logits, batch.labels, mask)
            trained = losses
            if self._class_weights is not None or self._label_smoothing:
                options = {"weight": self._class_weights, "label_smoothing": self._label_smoothing}
                trained = _mean_losses(logits, batch.labels, mask, **options)
            loss = trained.sum() / mask.any(dim=1).sum().clamp(min=1)
        else:
            losses = -self.crf.log_likelihood(logits, batch.labels, mask)
            loss = losses.sum()
        return LogitsOutput(loss=loss, example_losses=losses, logits=logits)

    def require_average(self, heads: Sequence[Head[Any]]) -> None:
        super().require_average(heads)
        if len({head.crf is None for head in heads if isinstance(head, Tagger)}) > 1:
            raise RunError(
                "taggers with and without a CRF have scores of different kinds; combine the runs "
                "by vote"
            )

    def mean_output(
        self, outputs: Sequence[LogitsOutput], heads: Sequence[Head[Any]]
    ) -> LogitsOutput:
        """Return mean logits, with a CRF of mean transitions.

        The score of a sequence is a sum of both, so this is the mean of the scores of sequences.
        """
        crfs = [head.crf for head in heads if isinstance(head, Tagger) and head.crf is not None]
        crf = mean_crf(crfs, label_orders(heads)) if crfs else None
        return _MeanOutput(loss=None, logits=mean_logits(outputs, heads), crf=crf)

    def label_scores(
        self, output: LogitsOutput, batch: LabeledBatch
    ) -> Float[Tensor, "batch tokens tags"]:
        """Return the logits of each word; with a CRF, those of the marginal probabilities."""
        logits = output.logits
        return logits if self.crf is None else self.crf.marginal_scores(logits, batch.text.mask)

    def probabilities(
        self, output: LogitsOutput, batch: LabeledBatch
    ) -> Float[Tensor, "batch tokens tags"]:
        if self.crf is None:
            return super().probabilities(output, batch)
        at = self.temperature or 1.0
        scores = self.crf.marginal_scores(output.logits, batch.text.mask, temperature=at)
        return scores.softmax(dim=2)

    def scored_labels(self, output: LogitsOutput, batch: LabeledBatch) -> ScoredLabels:
        if self.crf is None or batch.labels is None:
            return super().scored_labels(output, batch)
        return ScoredSequences.of(self.crf, output.logits, batch.labels, batch.text.mask)

    def predict(self, output: LogitsOutput, batch: LabeledBatch) -> list[tuple[str, ...]]:
        crf = self._crf_of(output)
        if crf is None:
            best = output.logits.argmax(dim=2)
        else:
            best = crf.best_tags(output.logits, batch.text.mask)
        return [
            tuple(self.labels.items[tag] for tag in tags[: len(words)])
            for tags, words in zip(best.tolist(), batch.text.words, strict=True)
        ]

    def annotation_probabilities(
        self,
        output: LogitsOutput,
        batch: LabeledBatch,
        predictions: Sequence[Sequence[str]],
        *,
        top_k: int = 1,
    ) -> list[Sequence[Mapping[str, float]]]:
        crf, temperature = self._crf_of(output), self.temperature or 1.0
        logits, num_tags = output.logits.double().cpu().numpy(), len(self.labels)
        bounds = [np.zeros(num_tags), np.zeros((num_tags, num_tags)), np.zeros(num_tags)]
        if crf is not None:
            bounds = [scores.detach().double().cpu().numpy() for scores in crf.decoding_scores()]
        return [
            label_probabilities(
                TagScores(*(each / temperature for each in (emissions[: len(tags)], *bounds))),
                self.labels.items,
                tag_annotations(tags),
                are_spans=marks_spans(tags),
                top_k=top_k,
            )
            if tags
            else ()
            for emissions, tags in zip(logits, predictions, strict=True)
        ]

    def _crf_of(self, output: LogitsOutput) -> ConditionalRandomField | None:
        return output.crf if isinstance(output, _MeanOutput) else self.crf

    def terms(
        self, predictions: Sequence[Any], output: ModelOutput, batch: LabeledBatch
    ) -> list[dict[str, float]]:
        terms = super().terms(predictions, output, batch)
        if batch.labels is not None and isinstance(output, LogitsOutput):
            near = output.logits.topk(min(_NUM_NEAR, len(self.labels)), dim=2).indices
            is_near = (near == batch.labels[:, :, None]).any(dim=2) & batch.text.mask
            for each, num_near in zip(terms, is_near.sum(dim=1).tolist(), strict=True):
                each["near_words"] = float(num_near)
        return terms

    def count(self, prediction: Sequence[str], example: TaggedSentence) -> dict[str, float]:
        return super().count(prediction, example) | self._marks

    def scores(self, sums: Mapping[str, float]) -> dict[str, float]:
        return super().scores({**self._marks, **sums})

    @classmethod
    def scores_of(
        cls, sums: Mapping[str, float], metrics: Mapping[str, Metric]
    ) -> dict[str, float]:
        scores = super().scores_of(sums, metrics)
        if _WITHOUT_SPANS in sums:
            others = {name: metric for name, metric in metrics.items() if name != "span_f1"}
            scores = {name: score for name, score in scores.items() if not is_over_labels(name)}
            scores |= super().scores_of(sums, others)
        if "near_words" in sums or "num_examples" not in sums:
            near = ratio(sums.get("near_words", 0.0), sums.get("span_f1/words", 0.0))
            scores = {"accuracy3": near, **scores}
        return scores

    @property
    def _marks(self) -> dict[str, float]:
        """The term that marks tags without spans, such as parts of speech."""
        return {} if self._has_spans else {_WITHOUT_SPANS: 1.0}

    def _logits(self, text: TextBatch) -> Float[Tensor, "batch tokens tags"]:
        encoded = self.dropout(self.embedder(text))
        if self.encoder is not None:
            encoded = self.dropout(self.encoder(encoded, text.mask))
        encoded = concatenate(encoded, self.output_embedder, text)
        if self.output_encoder is not None:
            encoded = self.dropout(self.output_encoder(encoded, text.mask))
        hidden = encoded if self.feedforward is None else self.feedforward(encoded)
        logits: Tensor = self.projection(hidden)
        return logits


@final
@Head.register("simple_tagger")
class SimpleTagger(Tagger):
    """A linear layer over the vectors of the words, with or without an encoder between them.

        p(tag | word) = softmax(W h + b)

    The loss is the mean of -log p over the words of a sentence, and then over the sentences of a
    batch. With `decoder: crf` it is that of `crf_tagger`: -log p of the whole sequence of tags,
    summed over the sentences.

    Args:
        decoder: whether each tag is predicted independently (`softmax`), or all tags of a sentence
            jointly, within the scheme of the tags (`crf`).
        class_weights: what the loss of a word is multiplied with, by its tag, as of a classifier:
            `{'B-PER': 5}` or `balanced`; for `decoder: softmax`. The reported `loss` remains the
            mean of -log p.
        label_smoothing: the part of the target that is distributed evenly over all tags; for
            `decoder: softmax`, too.
    """

    def __init__(
        self,
        embedder: TextEmbedder,
        vocabularies: Injected[Vocabularies],
        encoder: Lazy[Encoder] | None = None,
        output_embedder: TokenEmbedder | None = None,
        output_encoder: Lazy[Encoder] | None = None,
        dropout: DropoutRate = 0.0,
        decoder: Literal["softmax", "crf"] = "softmax",
        class_weights: ClassWeights | None = None,
        label_smoothing: Annotated[float, Ge(0), Lt(1)] = 0.0,
    ) -> None:
        super().__init__(
            embedder=embedder,
            encoder=encoder,
            vocabularies=vocabularies,
            output_embedder=output_embedder,
            output_encoder=output_encoder,
            dropout=dropout,
        )
        self.crf = tag_crf(self.labels, self.scheme) if decoder == "crf" else None
        for key, value in (("class_weights", class_weights), ("label_smoothing", label_smoothing)):
            if value and self.crf is not None:
                refuse_key(key, "is for `decoder: softmax`; a CRF predicts whole sequences")
        self._class_weights = weights_of_labels(class_weights, vocabularies)
        self._label_smoothing = label_smoothing


@final
@Head.register("crf_tagger")
class CrfTagger(Tagger):
    """An encoder with a conditional random field over its outputs (section 4 of the paper).

    The loss is the negative log-likelihood of the tags, summed over the sentences of a batch.

    Args:
        encoder: encoder of the embedded sentence.
        output_encoder: encoder of the output of `encoder` and `output_embedder`; with a language
            model's vectors between two recurrent layers, the tagger of Peters et al. (2017).
        include_start_end_transitions: whether each tag has a score as the first and as the last
            one.
        constrain_transitions: whether to predict only sequences that the scheme of the tags
            allows. Without a scheme, as for parts of speech, nothing is constrained.
    """

    def __init__(
        self,
        embedder: TextEmbedder,
        encoder: Lazy[Encoder],
        vocabularies: Injected[Vocabularies],
        output_embedder: TokenEmbedder | None = None,
        output_encoder: Lazy[Encoder] | None = None,
        dropout: DropoutRate = 0.0,
        include_start_end_transitions: bool = False,
        constrain_transitions: bool = True,
        label_encoding: Scheme | None = None,
        feedforward: FeedForwardOptions | None = None,
    ) -> None:
        super().__init__(
            embedder=embedder,
            encoder=encoder,
            vocabularies=vocabularies,
            output_embedder=output_embedder,
            output_encoder=output_encoder,
            dropout=dropout,
            feedforward=feedforward,
            label_encoding=label_encoding,
        )
        _log.info("the %d tags are of the scheme %s", len(self.labels), self.scheme)
        if constrain_transitions:
            check_label_encoding(label_encoding, vocabularies)
        self.crf = tag_crf(
            self.labels,
            self.scheme if constrain_transitions else None,
            include_start_end_transitions=include_start_end_transitions,
        )


def _mean_losses(
    logits: Float[Tensor, "batch tokens tags"],
    tags: Int[Tensor, "batch tokens"],
    mask: Bool[Tensor, "batch tokens"],
    **options: Any,
) -> Float[Tensor, " batch"]:
    """Return the mean of -log p over the words of each sentence; 0 for one without words.

    Args:
        logits: of each tag.
        tags: the right ones.
        mask: of the words.
        options: of `torch.nn.functional.cross_entropy`.
    """
    losses = functional.cross_entropy(logits.transpose(1, 2), tags, reduction="none", **options)
    total = torch.where(mask, losses, 0.0).sum(dim=1)
    return total / mask.sum(dim=1).clamp(min=1)
