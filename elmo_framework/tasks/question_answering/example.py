"""A question about a passage."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import NamedTuple

from elmo_framework.data.tokenizer import Tokenizer


class Span(NamedTuple):
    """Words of a passage, from the first to the last, both inside."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class TokenizedText:
    """A text, its words, and where they stand in it.

    Attributes:
        text: as it was given.
        words: those of the tokenizer.
        offsets: of each word, the characters where it begins and before which it ends.
    """

    text: str
    words: tuple[str, ...]
    offsets: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, text: str, tokenizer: Tokenizer) -> TokenizedText:
        """Tokenize a text."""
        offsets = tuple(tokenizer.offsets(text))
        return cls(text, tuple(text[start:end] for start, end in offsets), offsets)

    def characters(self, span: Span) -> tuple[int, int]:
        """Return the characters where a span begins and before which it ends."""
        return self.offsets[span.first][0], self.offsets[span.last][1]

    def span(self, start: int, end: int) -> Span | None:
        """Return the words that the characters from `start` to before `end` touch, if any."""
        first = bisect_right(self.offsets, start, key=lambda word: word[1])
        last = bisect_left(self.offsets, end, key=lambda word: word[0]) - 1
        return Span(first, last) if start < end and first <= last else None


@dataclass(frozen=True, slots=True)
class PassageQuestion:
    """A question, the passage that answers it, and the answers where they are known.

    Attributes:
        id: names the question in a file of predictions.
        passage: one object for all its questions.
        question: the question itself.
        answers: the texts that count as right.
        span: the answer that is learned.
    """

    id: str
    passage: TokenizedText
    question: TokenizedText
    answers: tuple[str, ...] | None
    span: Span | None

    def __post_init__(self) -> None:
        """Refuse a text without words, in which nothing could be pointed at."""
        for name, held in (("passage", self.passage), ("question", self.question)):
            if not held.words:
                raise ValueError(f"the {name} has no words: {held.text!r}")


@dataclass(frozen=True, slots=True)
class Answer:
    """A predicted answer: its text, and the characters of the passage that it is."""

    text: str
    start: int
    end: int
