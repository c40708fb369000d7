"""Questions and their passages as tensors."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Int
from torch import Tensor

from elmo_framework.data.labels import batch_title
from elmo_framework.data.text import TextBatch
from elmo_framework.tasks.question_answering.example import PassageQuestion


@dataclass(frozen=True, slots=True)
class QuestionBatch:
    """Questions and their passages, each padded to the longest.

    Attributes:
        passage: the words of the passages.
        question: the words of the questions.
        spans: the first and the last word of the answers; None unless all of them have one.
        examples: the examples of the batch.
    """

    passage: TextBatch
    question: TextBatch
    spans: Int[Tensor, "batch 2"] | None
    examples: tuple[PassageQuestion, ...]

    @property
    def num_tokens(self) -> int:
        """The number of words of passages and questions, without padding."""
        return self.passage.num_words + self.question.num_words

    @property
    def title(self) -> str:
        """The first question, and the number of further ones."""
        question = self.examples[0].question.text.split()
        return batch_title(question, len(self.examples))
