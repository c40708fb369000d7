"""Extractive question answering: find the span of a passage that answers a question."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from elmo_framework.model.task import HeadTask, PredictionFormat
from elmo_framework.tasks.question_answering.example import (
    PassageQuestion,
    QuestionBatch,
    TokenizedText,
)

_KEYS = ("question", "passage")
_ANSWER_STYLE = "bold green reverse"


def squad_format(predictions: Iterable[tuple[Answer, PassageQuestion]]) -> Iterator[str]:
    """Write the format of SQuAD's official scorer: one JSON object from ids to answers.

    Raises:
        DataError: two questions have the same id, so that one answer would replace the other.
    """
    # Nothing is written before the last answer: half an object would be invalid JSON.
    answers: dict[str, str] = {}
    for prediction, example in predictions:
        if example.id in answers:
            raise DataError(f"two questions have the id {example.id!r}; ids must be unique")
        answers[example.id] = prediction.text
    yield json.dumps(answers, ensure_ascii=False) + "\n"


@final
class QuestionAnsweringTask(HeadTask[PassageQuestion, QuestionBatch]):
    """Predicts a span of the passage for each question; evaluated like SQuAD 1.1.

    A prediction is an `Answer`.
    """

    example_type = PassageQuestion
    metrics: ClassVar[Mapping[str, Metric]] = {"squad": SquadScores()}
    formats: ClassVar[Mapping[str, PredictionFormat]] = {"squad": squad_format}
    input_keys = (*_KEYS, "id")

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
        spans = [example.span for example in examples if example.span is not None]
        return QuestionBatch(
            passage=collate_text([example.passage.words for example in examples], indexers),
            question=collate_text([example.question.words for example in examples], indexers),
            spans=torch.tensor(spans) if len(spans) == len(examples) else None,
            examples=tuple(examples),
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
        return (prediction.text,)

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
        return {
            "id": example.id,
            "question": example.question.text,
            "passage": example.passage.text,
            "answer": prediction.text,
            "start": prediction.start,
            "end": prediction.end,
        }

    def pretty(self, prediction: Answer, example: PassageQuestion) -> Text:
        passage = example.passage.text
        return Text.assemble(
            (example.question.text, "bold"),
            "\n",
            passage[: prediction.start],
            (f"[{prediction.text}]", _ANSWER_STYLE),
            passage[prediction.end :],
        )


def _id(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise DataError(f"'id' is {shown(value)}; expected a string or a whole number")
    return str(value)
