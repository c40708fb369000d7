"""Read answers and questions from SQuAD's files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, final

from elmo_framework.config import Count, Default
from elmo_framework.data import DatasetReader, FileReader, PredictionInput, Tokenizer
from elmo_framework.data.formats import FileFormat, FileSample
from elmo_framework.tasks.question_answering import PassageQuestion, SquadReader

from .example import AnswerInPassage


@final
@DatasetReader.register("squad_questions")
class SquadQuestionReader(FileReader[AnswerInPassage]):
    """Reads the official JSON of SQuAD 1.1 or 2.0: an answer is the input, the question the output.

    The answer is the one that the reader `squad` trains on. Questions without an answer are
    skipped.

    Args:
        tokenizer: tokenizer of passages and questions.
        window: the number of words of the passage to keep on each side of the answer.
        max_instances: the maximum number of questions to read; null for all.
    """

    example_type = AnswerInPassage
    formats = (FileFormat.JSON,)

    def __init__(
        self,
        tokenizer: Annotated[Tokenizer, Default("spacy")],
        window: Count = 40,
        max_instances: Count | None = None,
    ) -> None:
        super().__init__(max_instances)
        self.tokenizer: Tokenizer = tokenizer
        self._window = window

    def examples(self, file: Path) -> Iterator[AnswerInPassage]:
        """Yield the questions of a file that have an answer."""
        for question in SquadReader(self.tokenizer).examples(file):
            if question.span is not None:
                yield self._around_answer(question)

    def inputs(self, file: Path) -> Iterator[PredictionInput[AnswerInPassage]]:
        """Yield the answers of a file for `elmo predict`, with their questions as `question`."""
        for question in SquadReader(self.tokenizer).examples(file):
            if question.span is not None:
                fields = {"question": question.question.text}
                yield PredictionInput(self._around_answer(question), fields)

    def recognizes(self, sample: FileSample) -> bool:
        """Return whether a file is one JSON document, with `data` if the sample shows it."""
        return SquadReader(self.tokenizer).recognizes(sample)

    def _around_answer(self, question: PassageQuestion) -> AnswerInPassage:
        assert question.span is not None
        start = max(0, question.span.first - self._window)
        end = question.span.last + 1 + self._window
        return AnswerInPassage(
            id=question.id,
            words=question.passage.words[start:end],
            first=question.span.first - start,
            last=question.span.last - start,
            question=question.question.words,
            passage=question.passage.text,
        )
