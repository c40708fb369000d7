"""Base class for models that predict the first and the last word of an answer."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from elmo_framework.data.text import TextBatch
from elmo_framework.embedders.text_embedder import TextEmbedder, TokenEmbedder, concatenate
from elmo_framework.metrics.metric import Metric
from elmo_framework.metrics.ratios import ratio
from elmo_framework.metrics.squad import Answer
from elmo_framework.model.head import Head, mean
from elmo_framework.model.model import ModelOutput
from elmo_framework.tasks.question_answering.example import PassageQuestion, QuestionBatch, Span
from elmo_framework.tasks.question_answering.task import QuestionAnsweringTask

Pointers: TypeAlias = tuple[Float[Tensor, "batch passage"], Float[Tensor, "batch passage"]]
"""Scores of each word as the start and as the end of the answer; undefined at padding."""


@dataclass(frozen=True, slots=True)
class AnswerOutput(ModelOutput):
    """Output of a model for a batch of questions.

    Attributes:
        start_logits: the score of each word of the passage as the first of the answer; -inf at
            padding.
        end_logits: the same as the last.
    """

    start_logits: Float[Tensor, "batch passage"]
    end_logits: Float[Tensor, "batch passage"]


class AnswerHead(Head[QuestionBatch]):
    """Encodes passage and question with shared weights, and predicts the span of an answer.

    The loss is -log p(first) - log p(last), averaged over the questions of a batch. In addition
    to the scores of the task there are accuracies with respect to the training target:
    `start_acc` of the most probable first word, `end_acc` of the most probable last word, and
    `span_acc` of the predicted answer.

    Args:
        embedder: word embeddings of passage and question.
        output_embedder: vectors appended to the output of the encoder: ELMo at the output.
        max_span_length: maximum number of words in a predicted answer; null for no limit.
    """

    task = QuestionAnsweringTask()

    def __init__(
        self,
        embedder: TextEmbedder,
        output_embedder: TokenEmbedder | None,
        max_span_length: int | None,
    ) -> None:
        super().__init__()
        self.embedder, self.output_embedder = embedder, output_embedder
        self._max_span_length = max_span_length

    @abstractmethod
    def encode(
        self, vectors: Float[Tensor, "batch tokens dim"], mask: Bool[Tensor, "batch tokens"]
    ) -> Float[Tensor, "batch tokens encoded"]:
        """Apply the first encoder to the vectors of passages or questions."""

    @abstractmethod
    def point(
        self,
        passage: Float[Tensor, "batch passage dim"],
        question: Float[Tensor, "batch question dim"],
        passage_mask: Bool[Tensor, "batch passage"],
        question_mask: Bool[Tensor, "batch question"],
    ) -> Pointers:
        """Score the words of passages by what was encoded."""

    def forward(self, batch: QuestionBatch) -> AnswerOutput:
        # Each text passes both embedders before the next one, as ELMo caches only one batch.
        passage, question = self._read(batch.passage), self._read(batch.question)
        mask = batch.passage.mask
        pointers = self.point(passage, question, mask, batch.question.mask)
        start, end = (logits.masked_fill(~mask, float("-inf")) for logits in pointers)
        if batch.spans is None:
            return AnswerOutput(loss=None, start_logits=start, end_logits=end)
        first, last = batch.spans.unbind(dim=1)
        of_start = F.cross_entropy(start, first, reduction="none")
        losses = of_start + F.cross_entropy(end, last, reduction="none")
        return AnswerOutput(
            loss=losses.mean(), example_losses=losses, start_logits=start, end_logits=end
        )

    def mean_output(
        self, outputs: Sequence[AnswerOutput], heads: Sequence[Head[Any]]
    ) -> AnswerOutput:
        # Each head has a constant of its own, which changes no maximum.
        return AnswerOutput(
            loss=None,
            start_logits=mean([output.start_logits for output in outputs]),
            end_logits=mean([output.end_logits for output in outputs]),
        )

    def predict(self, output: AnswerOutput, batch: QuestionBatch) -> list[Answer]:
        # Sums in half precision are rounded again, and spans would seem equally good.
        start_logits, end_logits = output.start_logits.float(), output.end_logits.float()
        spans = best_answers(start_logits, end_logits, self._max_span_length)
        answers = []
        for span, example in zip(spans.tolist(), batch.examples, strict=True):
            start, end = example.passage.characters(Span(*span))
            answers.append(Answer(example.passage.text[start:end], start, end))
        return answers

    def terms(
        self, predictions: Sequence[Any], output: ModelOutput, batch: QuestionBatch
    ) -> list[dict[str, float]]:
        terms = super().terms(predictions, output, batch)
        if batch.spans is None or not isinstance(output, AnswerOutput):
            return terms
        first, last = batch.spans.unbind(dim=1)
        starts = (output.start_logits.argmax(dim=1) == first).tolist()
        ends = (output.end_logits.argmax(dim=1) == last).tolist()
        for each, is_start, is_end in zip(terms, starts, ends, strict=True):
            each |= {"start_acc": float(is_start), "end_acc": float(is_end)}
        return terms

    def count(self, prediction: Answer, example: PassageQuestion) -> dict[str, float]:
        counts = super().count(prediction, example)
        if example.span is None:
            return counts
        place = example.passage.characters(example.span)
        return {**counts, "span_acc": float((prediction.start, prediction.end) == place)}

    @classmethod
    def scores_of(
        cls, sums: Mapping[str, float], metrics: Mapping[str, Metric]
    ) -> dict[str, float]:
        accuracies = {
            name: ratio(sums.get(name, 0.0), sums.get("num_examples", 0.0))
            for name in ("start_acc", "end_acc", "span_acc")
            if name in sums or "num_examples" not in sums
        }
        return {**super().scores_of(sums, metrics), **accuracies}

    def _read(self, text: TextBatch) -> Tensor:
        encoded = self.encode(self.embedder(text), text.mask)
        return concatenate(encoded, self.output_embedder, text)


def best_answers(
    start_scores: Float[Tensor, "batch tokens"],
    end_scores: Float[Tensor, "batch tokens"],
    max_length: int | None = None,
) -> Int[Tensor, "batch 2"]:
    """Return the first and the last word of the span with the highest sum of its two scores.

    Ties go to the span that starts first, then to the shortest.

    Args:
        start_scores: of each word as the first; -inf where a span must not start.
        end_scores: of each word as the last; -inf where a span must not end.
        max_length: maximum number of words in a span; None for no limit.
    """
    first = (start_scores + _best_ends(end_scores, max_length)).argmax(dim=1, keepdim=True)
    places = torch.arange(end_scores.shape[1], device=end_scores.device)
    may_end = places >= first
    if max_length is not None:
        may_end &= places < first + max_length
    sums = start_scores.gather(1, first) + end_scores
    last = sums.masked_fill(~may_end, float("-inf")).argmax(dim=1, keepdim=True)
    return torch.cat([first, last], dim=1)


def _best_ends(
    end_scores: Float[Tensor, "batch tokens"], max_length: int | None
) -> Float[Tensor, "batch tokens"]:
    """Return the highest score of an end for a span that begins at each word."""
    if max_length is None:
        return end_scores.flip(1).cummax(dim=1).values.flip(1)
    width = min(max_length, end_scores.shape[1])
    padded = F.pad(end_scores, (0, width - 1), value=float("-inf"))
    return padded.unfold(1, width, 1).amax(dim=2)
