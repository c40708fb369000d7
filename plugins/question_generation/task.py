"""Question generation as a task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, final

import torch
from jaxtyping import Int
from torch import Tensor

from elmo_framework import DataError
from elmo_framework.data import (
    Counts,
    Indexer,
    Tokenizer,
    Vocabularies,
    Vocabulary,
    collate_text,
    input_words,
)
from elmo_framework.metrics import Metric
from elmo_framework.model import HeadTask, PredictionFormat

from .bleu import Bleu
from .example import (
    BEGIN,
    INSIDE,
    OUTSIDE,
    AnswerInPassage,
    GeneratedQuestion,
    QuestionBatch,
    Source,
    Target,
)

START, END = "@@START@@", "@@END@@"
_WORDS = "question_words"
_NUM_SPECIAL = 2


def question_vocabulary(vocabularies: Vocabularies) -> Vocabulary:
    """Return the words of questions after padding, unknown words, the start and the end."""
    items = vocabularies.words(_WORDS).items
    special, words = items[:_NUM_SPECIAL], items[_NUM_SPECIAL:]
    return Vocabulary([*special, START, END, *words], name=_WORDS, unknown=special[1])


def lines(predictions: Iterable[tuple[GeneratedQuestion, AnswerInPassage]]) -> Iterator[str]:
    """Write one question per line."""
    for prediction, _ in predictions:
        yield " ".join(prediction.words) + "\n"


@final
class QuestionGenerationTask(HeadTask[AnswerInPassage, QuestionBatch]):
    """Writes the question that a part of a passage answers; a prediction is a `GeneratedQuestion`.

    Questions are compared in lower case.
    """

    example_type = AnswerInPassage
    metrics: ClassVar[Mapping[str, Metric]] = {"bleu": Bleu()}
    formats: ClassVar[Mapping[str, PredictionFormat]] = {"lines": lines}
    input_keys = ("passage", "answer", "id")
    agreement_scores = ("bleu",)

    def count(self, examples: Iterable[AnswerInPassage]) -> Counts:
        """Count `words` of passages, and `question_words` in lower case."""
        words: Counter[str] = Counter()
        question_words: Counter[str] = Counter()
        for example in examples:
            words.update(example.words)
            question_words.update(map(str.lower, example.question or ()))
        return {"words": words, _WORDS: question_words}

    def collate(
        self,
        examples: Sequence[AnswerInPassage],
        vocabularies: Vocabularies,
        indexers: Sequence[Indexer],
    ) -> QuestionBatch:
        """Make a batch of passages, and of questions if all are known."""
        vocabulary = question_vocabulary(vocabularies)
        rows = [_source_ids(example, vocabulary) for example in examples]
        source = Source(
            text=collate_text([example.words for example in examples], indexers),
            tags=_padded([_tags(example) for example in examples]),
            ids=_padded([ids for ids, _ in rows]),
            num_unknown=max(len(unknown) for _, unknown in rows),
            unknown=tuple(unknown for _, unknown in rows),
        )
        targets = [
            _target_ids(example.question, unknown, vocabulary)
            for example, (_, unknown) in zip(examples, rows, strict=True)
            if example.question is not None
        ]
        if len(targets) < len(examples):
            return QuestionBatch(source, None, tuple(examples))
        # No word has the id 0, which is padding.
        ids = _padded(targets)
        return QuestionBatch(source, Target(ids, ids > 0), tuple(examples))

    def sentences(self, example: AnswerInPassage) -> Iterable[Sequence[str]]:
        """Return the passage, as a tuple of one."""
        return (example.words,)

    def sampling_unit(self, example: AnswerInPassage) -> str:
        """Return the whole passage, which several questions have in common."""
        return example.passage

    def gold(self, example: AnswerInPassage) -> tuple[str, ...]:
        """Return the words of the question."""
        if example.question is None:
            raise DataError(f"an answer without a question cannot be scored: {example.id!r}")
        return example.question

    def as_gold(self, prediction: GeneratedQuestion) -> tuple[str, ...]:
        """Return the words of a generated question."""
        return prediction.words

    def example(self, inputs: Mapping[str, Any], tokenizer: Tokenizer) -> AnswerInPassage:
        """Make an example of `{"passage": "...", "answer": "..."}`, texts or lists of words.

        The answer is its first occurrence in the passage.
        """
        words = input_words(inputs, "passage", tokenizer)
        answer = input_words(inputs, "answer", tokenizer)
        starts = range(len(words) - len(answer) + 1)
        first = next((i for i in starts if answer and words[i : i + len(answer)] == answer), None)
        if first is None:
            raise DataError(f"the words of the answer {' '.join(answer)!r} are not in the passage")
        name = str(inputs.get("id", " ".join(answer)))
        return AnswerInPassage(
            id=name,
            words=words,
            first=first,
            last=first + len(answer) - 1,
            question=None,
            passage=" ".join(words),
        )

    def to_json(self, prediction: GeneratedQuestion, example: AnswerInPassage) -> dict[str, Any]:
        """Return the question with its answer and its log probability."""
        return {
            "id": example.id,
            "answer": " ".join(example.answer),
            "question": " ".join(prediction.words),
            "log_probability": prediction.log_probability,
        }


def _tags(example: AnswerInPassage) -> list[int]:
    tags = [OUTSIDE] * len(example.words)
    tags[example.first : example.last + 1] = [INSIDE] * (example.last - example.first + 1)
    tags[example.first] = BEGIN
    return tags


def _source_ids(
    example: AnswerInPassage, vocabulary: Vocabulary
) -> tuple[list[int], tuple[str, ...]]:
    """Return the ids of the words of a passage, and its words outside the vocabulary."""
    words = [word.lower() for word in example.words]
    unknown = tuple(dict.fromkeys(word for word in words if word not in vocabulary))
    own = {word: len(vocabulary) + index for index, word in enumerate(unknown)}
    return [own[word] if word in own else vocabulary.id(word) for word in words], unknown


def _target_ids(
    question: Sequence[str], unknown: Sequence[str], vocabulary: Vocabulary
) -> list[int]:
    own = {word: len(vocabulary) + index for index, word in enumerate(unknown)}
    words = [word.lower() for word in question]
    ids = [own[word] if word in own else vocabulary.id(word) for word in words]
    return [*ids, vocabulary.id(END)]


def _padded(rows: Sequence[Sequence[int]]) -> Int[Tensor, "batch tokens"]:
    padded = torch.zeros(len(rows), max(1, *map(len, rows)), dtype=torch.long)
    for row, ids in zip(padded, rows, strict=True):
        row[: len(ids)] = torch.tensor(ids, dtype=torch.long)
    return padded
