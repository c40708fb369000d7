"""Answers in passages, the questions about them, and their batches."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Bool, Int
from torch import Tensor

from elmo_framework.data import TextBatch

OUTSIDE, BEGIN, INSIDE = range(3)
"""The tags of the words of a passage: not in the answer, its first word, its other words."""


@dataclass(frozen=True, slots=True)
class AnswerInPassage:
    """An answer in a passage, and the question that it answers.

    Attributes:
        id: of the question in its file.
        words: the words of the passage around the answer.
        first: the index of the first word of the answer.
        last: the index of its last word.
        question: the words of the question; None if unknown.
        passage: the whole passage; its questions depend on each other.
    """

    id: str
    words: tuple[str, ...]
    first: int
    last: int
    question: tuple[str, ...] | None
    passage: str

    @property
    def answer(self) -> tuple[str, ...]:
        """The words of the answer."""
        return self.words[self.first : self.last + 1]


@dataclass(frozen=True, slots=True)
class GeneratedQuestion:
    """A generated question.

    Attributes:
        words: in lower case.
        log_probability: the natural logarithm of its probability, with its end.
    """

    words: tuple[str, ...]
    log_probability: float


@dataclass(frozen=True, slots=True)
class Source:
    """Passages to write questions about.

    A word of a passage that is not in the vocabulary of questions has an id above those of the
    vocabulary, its own in each row, so that it can be copied.

    Attributes:
        text: the words.
        tags: which of them are in the answer.
        ids: the ids of the words in lower case; 0 at padding.
        num_unknown: the largest number of ids above the vocabulary in a row.
        unknown: the words of these ids, for each row.
    """

    text: TextBatch
    tags: Int[Tensor, "batch tokens"]
    ids: Int[Tensor, "batch tokens"]
    num_unknown: int
    unknown: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Target:
    """The questions to learn.

    Attributes:
        ids: the words and the end of each question, in the ids of `Source.ids`; 0 at padding.
        mask: false at padding.
    """

    ids: Int[Tensor, "batch steps"]
    mask: Bool[Tensor, "batch steps"]


@dataclass(frozen=True, slots=True)
class QuestionBatch:
    """Answers in passages, padded to the longest passage.

    Attributes:
        source: the passages.
        target: the questions; None unless all are known.
        examples: the examples of the batch.
    """

    source: Source
    target: Target | None
    examples: tuple[AnswerInPassage, ...]

    @property
    def num_tokens(self) -> int:
        """The number of words of the passages, without padding."""
        return self.source.text.num_words

    @property
    def title(self) -> str:
        """The first answer and the number of others, for messages."""
        return f"{' '.join(self.examples[0].answer)!r} and {len(self.examples) - 1} more"
