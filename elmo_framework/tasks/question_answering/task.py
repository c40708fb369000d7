"""Extractive question answering: find the span of a passage that answers a question."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, final

import torch
from rich.text import Text

from elmo_framework.data.formats.records import string_of
from elmo_framework.data.inputs import require_object
from elmo_framework.data.text import Indexer, collate_text
from elmo_framework.data.tokenizer import Tokenizer
from elmo_framework.data.vocabulary import Counts, Vocabularies
from elmo_framework.errors import DataError, shown
from elmo_framework.metrics.metric import Metric
from elmo_framework.metrics.squad import Answer, SquadScores
from elmo_framework.model.mistakes import Mistake, interval_pieces
from elmo_framework.model.task import HeadTask, PredictionFormat
from elmo_framework.tasks.question_answering.example import (
    PassageQuestion,
    QuestionBatch,
    TokenizedText,
)

_KEYS = ("question", "passage")
_ANSWER_STYLE = "bold green reverse"
_NO_ANSWER = "no answer"


def squad_format(predictions: Iterable[tuple[Answer, PassageQuestion]]) -> Iterator[str]:
    """Write the format of SQuAD's official scorer: one JSON object from ids to answers.

    Raises:
        DataError: two questions have the same id, so that one answer would replace the other.
    """
    return _object_by_id((example.id, prediction.text) for prediction, example in predictions)


def probability_format(predictions: Iterable[tuple[Answer, PassageQuestion]]) -> Iterator[str]:
    """Write the no-answer probabilities of SQuAD 2.0's official scorer: one JSON object from ids.

    Raises:
        DataError: as of `squad_format`; or the model has no such probabilities.
    """
    return _object_by_id(
        (example.id, _require_option(prediction).no_answer_probability)
        for prediction, example in predictions
    )


def span_format(predictions: Iterable[tuple[Answer, PassageQuestion]]) -> Iterator[str]:
    """Write the best span of each question, also of those predicted to have no answer.

    With the probabilities, the official scorer finds the best threshold from them.

    Raises:
        DataError: as of `probability_format`.
    """
    return _object_by_id(
        (example.id, _require_option(prediction).best_span) for prediction, example in predictions
    )


def _require_option(prediction: Answer) -> Answer:
    if prediction.no_answer_probability is None:
        raise DataError(
            "these answers have no no-answer probability; train a model with 'no_answer: true'"
        )
    return prediction


def _object_by_id(pairs: Iterable[tuple[str, Any]]) -> Iterator[str]:
    # Nothing is written before the last value: half an object would be invalid JSON.
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name in values:
            raise DataError(f"two questions have the id {name!r}; ids must be unique")
        values[name] = value
    yield json.dumps(values, ensure_ascii=False) + "\n"


@final
class QuestionAnsweringTask(HeadTask[PassageQuestion, QuestionBatch]):
    """Predicts a span of the passage for each question, or that it has no answer.

    A prediction is an `Answer`, evaluated as in SQuAD 1.1, or as in SQuAD 2.0 if it has a no-answer
    probability.
    """

    example_type = PassageQuestion
    metrics: ClassVar[Mapping[str, Metric]] = {"squad": SquadScores()}
    formats: ClassVar[Mapping[str, PredictionFormat]] = {
        "squad": squad_format,
        "squad_no_answer": probability_format,
        "squad_spans": span_format,
    }
    input_keys = (*_KEYS, "id")
    agreement_scores = ("f1",)

    def count(self, examples: Iterable[PassageQuestion]) -> Counts:
        """Count `words`; those of a passage once for all its consecutive questions."""
        words: Counter[str] = Counter()
        passage: TokenizedText | None = None
        for example in examples:
            words.update(example.question.words)
            if example.passage is not passage:
                words.update(example.passage.words)
            passage = example.passage
        return {"words": words}

    def collate(
        self,
        examples: Sequence[PassageQuestion],
        vocabularies: Vocabularies,
        indexers: Sequence[Indexer],
    ) -> QuestionBatch:
        is_labeled = all(example.answers is not None for example in examples)
        spans = [example.span or (0, 0) for example in examples]
        has_answer = [example.span is not None for example in examples]
        return QuestionBatch(
            passage=collate_text([example.passage.words for example in examples], indexers),
            question=collate_text([example.question.words for example in examples], indexers),
            spans=torch.tensor(spans) if is_labeled else None,
            examples=tuple(examples),
            has_answer=torch.tensor(has_answer) if is_labeled else None,
        )

    def num_tokens(self, example: PassageQuestion) -> int:
        return len(example.passage.words)

    def sentences(self, example: PassageQuestion) -> Iterable[Sequence[str]]:
        """Return the passage, which is read as one sentence, and the question."""
        return (example.passage.words, example.question.words)

    def sampling_unit(self, example: PassageQuestion) -> str:
        """Return the passage, which several questions have in common."""
        return example.passage.text

    def gold(self, example: PassageQuestion) -> tuple[str, ...]:
        if example.answers is None:
            raise DataError(f"a question without answers cannot be scored: {example.id!r}")
        return example.answers

    def as_gold(self, prediction: Answer) -> tuple[str, ...]:
        return () if prediction.is_no_answer else (prediction.text,)

    def example(self, inputs: Mapping[str, Any], tokenizer: Tokenizer) -> PassageQuestion:
        """Make an example of `{"question": "...", "passage": "..."}`, perhaps with an `id`.

        An id is a string or a whole number; the question by default.
        """
        require_object(inputs, _KEYS)
        question, passage = (string_of(inputs, key) for key in _KEYS)
        try:
            return PassageQuestion(
                id=_id(inputs.get("id", question)),
                passage=TokenizedText.of(passage, tokenizer),
                question=TokenizedText.of(question, tokenizer),
                answers=None,
                span=None,
            )
        except ValueError as error:
            raise DataError(str(error)) from error

    def to_json(self, prediction: Answer, example: PassageQuestion) -> dict[str, Any]:
        output: dict[str, Any] = {
            "id": example.id,
            "question": example.question.text,
            "passage": example.passage.text,
            "answer": prediction.text,
            "start": None if prediction.is_no_answer else prediction.start,
            "end": None if prediction.is_no_answer else prediction.end,
        }
        if prediction.probability is not None:
            output["probability"] = prediction.probability
        if prediction.no_answer_probability is not None:
            output["no_answer_probability"] = prediction.no_answer_probability
            output["best_span"] = prediction.best_span
        return output

    def mistake(self, prediction: Answer, example: PassageQuestion) -> Mistake | None:
        """Return an answer that differs from all gold answers, by the part of them it misses."""
        gold = self.gold(example)
        counts = SquadScores().count(replace(prediction, no_answer_probability=None), gold or ("",))
        if counts["em"]:
            return None
        right = None if example.span is None else example.passage.characters(example.span)
        predicted = None if prediction.is_no_answer else (prediction.start, prediction.end)
        answers = " | ".join(dict.fromkeys(gold)) or _NO_ANSWER
        summary = f"{example.question.text} {answers}, predicted: {prediction.text or _NO_ANSWER}"
        pieces = interval_pieces(example.passage.text, right, predicted)
        return Mistake(1 - counts["f1"], summary, pieces)

    def pretty(self, prediction: Answer, example: PassageQuestion) -> Text:
        passage, probability = example.passage.text, prediction.no_answer_probability
        text = Text.assemble((example.question.text, "bold"), "\n")
        if prediction.is_no_answer:
            text.append(f"no answer, probability {probability:.2f}\n", _ANSWER_STYLE)
            return text.append(passage)
        if probability is not None:
            text.append(f"probability of no answer {probability:.2f}\n", "dim")
        return text.append_text(
            Text.assemble(
                passage[: prediction.start],
                (f"[{prediction.text}]", _ANSWER_STYLE),
                passage[prediction.end :],
            )
        )


def _id(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise DataError(f"'id' is {shown(value)}; expected a string or a whole number")
    return str(value)
