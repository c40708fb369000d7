"""Base class for models that predict the first and the last word of an answer."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from elmo_framework.data.text import TextBatch
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.embedders.text_embedder import (
    TextEmbedder,
    TokenEmbedder,
    any_carries_state,
    concatenate,
)
from elmo_framework.errors import DataError, RunError
from elmo_framework.metrics.metric import Metric
from elmo_framework.metrics.ratios import ratio
from elmo_framework.metrics.squad import Answer
from elmo_framework.model.head import Head, mean
from elmo_framework.model.model import ModelOutput
from elmo_framework.model.task import Collator
from elmo_framework.tasks.question_answering.example import PassageQuestion, QuestionBatch, Span
from elmo_framework.tasks.question_answering.no_answer import NoAnswerScore
from elmo_framework.tasks.question_answering.task import QuestionAnsweringTask

_THRESHOLD = 0.5
_ACCURACIES = ("start_acc", "end_acc", "span_acc")


class Pointers(NamedTuple):
    """Scores of each word as the start and as the end of the answer; undefined at padding.

    Attributes:
        start: of each word as the first.
        end: of each word as the last.
        no_answer: of the option that there is no answer; None without it.
    """

    start: Float[Tensor, "batch passage"]
    end: Float[Tensor, "batch passage"]
    no_answer: Float[Tensor, " batch"] | None = None


@dataclass(frozen=True, slots=True)
class AnswerOutput(ModelOutput):
    """Output of a model for a batch of questions.

    Attributes:
        start_logits: the score of each word of the passage as the first of the answer; -inf at
            padding.
        end_logits: the same as the last.
        no_answer_logits: the score of having no answer; None if that is no option.
    """

    start_logits: Float[Tensor, "batch passage"]
    end_logits: Float[Tensor, "batch passage"]
    no_answer_logits: Float[Tensor, " batch"] | None = None


class AnswerHead(Head[QuestionBatch]):
    """Encodes passage and question with shared weights, and predicts the span of an answer.

    The loss is -log p(first) - log p(last), averaged over the questions of a batch. In addition
    to the scores of the task there are accuracies with respect to the training target:
    `start_acc` of the most probable first word, `end_acc` of the most probable last word, and
    `span_acc` of the predicted answer.

    With `no_answer`, a score z of no answer is in one softmax with the scores s_i + g_j of all
    pairs of a first word i and a last word j (Clark and Gardner 2018, section 3.3):

        loss = log(e^z + sum_ij e^(s_i + g_j)) - z                  if there is no answer
        loss = log(e^z + sum_ij e^(s_i + g_j)) - s_first - g_last   otherwise

    No answer is predicted if its probability is above 0.5. For a question without an answer, each
    accuracy is whether none is predicted.

    Args:
        embedder: word embeddings of passage and question.
        output_embedder: vectors appended to the output of the encoder: ELMo at the output.
        max_span_length: maximum number of words in a predicted answer; null for no limit.
        no_answer: whether questions may have no answer, as in SQuAD 2.0; data with such questions
            needs it.

    Attributes:
        no_answer: scores the option that there is no answer; None without it.
    """

    task = QuestionAnsweringTask()
    no_answer: NoAnswerScore | None

    def __init__(
        self,
        embedder: TextEmbedder,
        output_embedder: TokenEmbedder | None,
        max_span_length: int | None,
    ) -> None:
        super().__init__()
        self.embedder, self.output_embedder = embedder, output_embedder
        self._max_span_length = max_span_length
        self._carries_state = any_carries_state(embedder, output_embedder)
        self.no_answer = None

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
        passage, question = self._encoded(batch)
        mask = batch.passage.mask
        pointers = Pointers(*self.point(passage, question, mask, batch.question.mask))
        start, end = (logits.masked_fill(~mask, float("-inf")) for logits in pointers[:2])
        output = AnswerOutput(None, start, end, pointers.no_answer)
        if batch.spans is None:
            return output
        losses = _losses(output, batch.spans, batch.has_answer)
        return replace(output, loss=losses.mean(), example_losses=losses)

    def collator(self, vocabularies: Vocabularies) -> Collator:
        collate = super().collator(vocabularies)
        return collate if self.no_answer is not None else partial(_collate_answerable, collate)

    def require_average(self, heads: Sequence[Head[Any]]) -> None:
        super().require_average(heads)
        options = {isinstance(head, AnswerHead) and head.no_answer is not None for head in heads}
        if len(options) > 1:
            raise RunError(
                "only some of these runs have 'no_answer: true', so their scores have no mean; "
                "combine the runs by vote"
            )

    def mean_output(
        self, outputs: Sequence[AnswerOutput], heads: Sequence[Head[Any]]
    ) -> AnswerOutput:
        # Each head has a constant of its own, which changes neither a maximum nor a softmax.
        scores = [each.no_answer_logits for each in outputs if each.no_answer_logits is not None]
        return AnswerOutput(
            loss=None,
            start_logits=mean([output.start_logits for output in outputs]),
            end_logits=mean([output.end_logits for output in outputs]),
            no_answer_logits=mean(scores) if scores else None,
        )

    def predict(self, output: AnswerOutput, batch: QuestionBatch) -> list[Answer]:
        # Sums in half precision are rounded again, and spans would seem equally good.
        start_logits, end_logits = output.start_logits.float(), output.end_logits.float()
        spans = best_answers(start_logits, end_logits, self._max_span_length)
        answers = []
        probabilities = _probabilities(output, spans).tolist()
        for span, example, p in zip(spans.tolist(), batch.examples, probabilities, strict=True):
            start, end = example.passage.characters(Span(*span))
            answers.append(Answer(example.passage.text[start:end], start, end, probability=p))
        if output.no_answer_logits is None:
            return answers
        probabilities = _log_odds_of_no_answer(output).sigmoid().tolist()
        return [_with_option(*pair) for pair in zip(answers, probabilities, strict=True)]

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
        for each, prediction, example in zip(terms, predictions, batch.examples, strict=True):
            if example.span is None:
                each |= dict.fromkeys(_ACCURACIES, float(prediction.is_no_answer))
        return terms

    def count(self, prediction: Answer, example: PassageQuestion) -> dict[str, float]:
        counts = super().count(self._in_own_form(prediction), example)
        if example.span is None:
            return {**counts, "span_acc": float(prediction.is_no_answer)}
        place = example.passage.characters(example.span)
        return {**counts, "span_acc": float((prediction.start, prediction.end) == place)}

    def scores(self, sums: Mapping[str, float]) -> dict[str, float]:
        if self.no_answer is not None and not sums:
            sums = {"squad/gold/NoAns": 0.0}  # gives the names of the scores of version 2.0
        return super().scores(sums)

    @classmethod
    def scores_of(
        cls, sums: Mapping[str, float], metrics: Mapping[str, Metric]
    ) -> dict[str, float]:
        accuracies = {
            name: ratio(sums.get(name, 0.0), sums.get("num_examples", 0.0))
            for name in _ACCURACIES
            if name in sums or "num_examples" not in sums
        }
        return {**super().scores_of(sums, metrics), **accuracies}

    def _in_own_form(self, answer: Answer) -> Answer:
        """Return an answer, perhaps of another head of an ensemble, with this head's options."""
        if self.no_answer is None:
            return replace(answer, no_answer_probability=None, best_span=None)
        if answer.no_answer_probability is None:
            return replace(answer, no_answer_probability=0.0, best_span=answer.text)
        return answer

    def _encoded(self, batch: QuestionBatch) -> tuple[Tensor, Tensor]:
        # Each text passes both embedders before the next one, as ELMo caches only one batch.
        if self._carries_state:
            # The passage continues the question, as in AllenNLP.
            question, passage = self._read(batch.question), self._read(batch.passage)
        else:
            passage, question = self._read(batch.passage), self._read(batch.question)
        return passage, question

    def _read(self, text: TextBatch) -> Tensor:
        encoded = self.encode(self.embedder(text), text.mask)
        return concatenate(encoded, self.output_embedder, text)


def _collate_answerable(collate: Collator, examples: Sequence[PassageQuestion]) -> QuestionBatch:
    """Collate questions for a head that always answers.

    Raises:
        DataError: a question has no answer.
    """
    for example in examples:
        if example.answers is not None and example.span is None:
            raise DataError(
                f"question {example.id!r} has no answer; set 'no_answer: true' in the model, or "
                "use data in which every question has one",
                path=example.path,
            )
    batch: QuestionBatch = collate(examples)
    return batch


def _losses(
    output: AnswerOutput,
    spans: Int[Tensor, "batch 2"],
    has_answer: Bool[Tensor, " batch"] | None,
) -> Float[Tensor, " batch"]:
    first, last = spans.unbind(dim=1)
    if output.no_answer_logits is None:
        of_start = F.cross_entropy(output.start_logits, first, reduction="none")
        return of_start + F.cross_entropy(output.end_logits, last, reduction="none")
    of_start, of_end = (
        logits.gather(1, place[:, None]).squeeze(1)
        for logits, place in ((output.start_logits, first), (output.end_logits, last))
    )
    target = of_start + of_end
    if has_answer is not None:
        target = torch.where(has_answer, target, output.no_answer_logits)
    spans_total = _log_sum_of_spans(output.start_logits, output.end_logits)
    return torch.logaddexp(output.no_answer_logits, spans_total) - target


def _log_sum_of_spans(start: Tensor, end: Tensor) -> Float[Tensor, " batch"]:
    """Return log sum_ij e^(s_i + g_j), also over pairs whose end is before their start."""
    return start.logsumexp(dim=1) + end.logsumexp(dim=1)


def _probabilities(output: AnswerOutput, spans: Int[Tensor, "batch 2"]) -> Float[Tensor, " batch"]:
    """Return e^(s_i + g_j) / (e^z + sum_ij e^(s_i + g_j)) of spans, z = -inf without option."""
    start, end = output.start_logits.double(), output.end_logits.double()
    scores = (start.gather(1, spans[:, :1]) + end.gather(1, spans[:, 1:])).squeeze(1)
    total = _log_sum_of_spans(start, end)
    if output.no_answer_logits is not None:
        total = torch.logaddexp(output.no_answer_logits.double(), total)
    return (scores - total).exp()


def _log_odds_of_no_answer(output: AnswerOutput) -> Float[Tensor, " batch"]:
    assert output.no_answer_logits is not None
    # In double precision, fewer probabilities become exactly 0 or 1, where no threshold differs.
    spans = _log_sum_of_spans(output.start_logits.double(), output.end_logits.double())
    return output.no_answer_logits.double() - spans


def _with_option(answer: Answer, probability: float) -> Answer:
    """Return an answer with its no-answer probability, without text if that is above 0.5."""
    if probability > _THRESHOLD:
        return Answer("", 0, 0, probability, answer.text, answer.probability)
    return replace(answer, no_answer_probability=probability, best_span=answer.text)


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
