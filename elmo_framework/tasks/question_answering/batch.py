"""Questions and their passages as tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from elmo_framework.data.labels import batch_title
from elmo_framework.data.text import Indexer, TextBatch, collate_text
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


@dataclass(frozen=True, slots=True)
class QuestionCollator:
    """Makes batches of questions.

    Attributes:
        indexers: convert words to the ids that the model reads.
    """

    indexers: tuple[Indexer, ...]

    def __call__(self, examples: Sequence[PassageQuestion]) -> QuestionBatch:
        """Make a batch."""
        spans = [example.span for example in examples if example.span is not None]
        return QuestionBatch(
            passage=collate_text([example.passage.words for example in examples], self.indexers),
            question=collate_text([example.question.words for example in examples], self.indexers),
            spans=torch.tensor(spans) if len(spans) == len(examples) else None,
            examples=tuple(examples),
        )
