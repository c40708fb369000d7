"""Questions about passages, and their batches."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from jaxtyping import Bool, Int
from torch import Tensor

from elmo_framework.data.labels import batch_title
from elmo_framework.data.text import TextBatch
from elmo_framework.data.tokenizer import Tokenizer


class Span(NamedTuple):
    """Words of a passage, from the first to the last, both inside."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class TokenizedText:
    """A tokenized text with character offsets.

    Attributes:
        text: the original text.
        words: its words.
        offsets: for each word, its first character and the character after its last.
    """

    text: str
    words: tuple[str, ...]
    offsets: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, text: str, tokenizer: Tokenizer) -> TokenizedText:
        offsets = tuple(tokenizer.offsets(text))
        return cls(text, tuple(text[start:end] for start, end in offsets), offsets)

    def characters(self, span: Span) -> tuple[int, int]:
        """Return the first character of a span and the character after its last."""
        return self.offsets[span.first][0], self.offsets[span.last][1]

    def span(self, start: int, end: int) -> Span | None:
        """Return the words that the characters from `start` to before `end` touch, if any."""
        first = bisect_right(self.offsets, start, key=lambda word: word[1])
        last = bisect_left(self.offsets, end, key=lambda word: word[0]) - 1
        return Span(first, last) if start < end and first <= last else None


@dataclass(frozen=True, slots=True)
class PassageQuestion:
    """A question, a passage, and optionally the answers.

    Attributes:
        id: identifies the question in a file of predictions.
        passage: one object shared by all its questions.
        question: the question itself.
        answers: the gold answers; empty if the passage has none, None if they are not known.
        span: the training target, the words of one of the answers.
        path: the file of the question, for messages.
    """

    id: str
    passage: TokenizedText
    question: TokenizedText
    answers: tuple[str, ...] | None
    span: Span | None
    path: Path | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        for name, text in (("passage", self.passage), ("question", self.question)):
            if not text.words:
                raise ValueError(f"the {name} has no words: {text.text!r}")


@dataclass(frozen=True, slots=True)
class QuestionBatch:
    """Questions and their passages, each padded to the longest.

    Attributes:
        passage: the words of the passages.
        question: the words of the questions.
        spans: the first and the last word of the answers, 0 and 0 where there is none; None unless
            the answers of all questions are known.
        examples: the examples of the batch.
        has_answer: whether each question has an answer; None with `spans`.
    """

    passage: TextBatch
    question: TextBatch
    spans: Int[Tensor, "batch 2"] | None
    examples: tuple[PassageQuestion, ...]
    has_answer: Bool[Tensor, " batch"] | None = None

    @property
    def num_tokens(self) -> int:
        """The number of words of passages and questions, without padding."""
        return self.passage.num_words + self.question.num_words

    @property
    def title(self) -> str:
        question = self.examples[0].question.text.split()
        return batch_title(question, len(self.examples))
