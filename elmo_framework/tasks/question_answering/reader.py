"""Read the JSON files of SQuAD 1.1 and 2.0."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, final

from elmo_framework.config.types import Count, Default
from elmo_framework.console import plural
from elmo_framework.data.formats.compressed import decompressed, reading
from elmo_framework.data.formats.file_format import FileFormat, FileSample
from elmo_framework.data.formats.records import Record, record_of, require_characters
from elmo_framework.data.inputs import PredictionInput, other_fields
from elmo_framework.data.reader import DatasetReader, FileReader
from elmo_framework.data.tokenizer import Tokenizer
from elmo_framework.errors import DataError, shown
from elmo_framework.tasks.question_answering.example import PassageQuestion, Span, TokenizedText

_log = logging.getLogger(__name__)


@final
@DatasetReader.register("squad")
class SquadReader(FileReader[PassageQuestion]):
    """Reads questions with their passages: the official JSON of versions 1.1 and 2.0.

    A question with `is_impossible: true` has no answer, and needs a model with `no_answer: true`;
    its `plausible_answers` are not used.

    The training target is the most frequent answer, the first one of several. If it does not
    begin and end at word boundaries, it is extended to the words that it touches; the log reports
    how often. All answers count in the scores. The ids of a file must be unique.

    Args:
        tokenizer: tokenizer of passages and questions.
        passage_length_limit: skip questions about passages with more words; null for no limit.
            For training only: scores should cover all questions, so set a
            `validation_dataset_reader` without it.
        max_instances: maximum number of questions to read; null for all.
    """

    example_type = PassageQuestion
    formats = (FileFormat.JSON,)

    def __init__(
        self,
        tokenizer: Annotated[Tokenizer, Default("spacy")],
        passage_length_limit: Count | None = None,
        max_instances: Count | None = None,
    ) -> None:
        super().__init__(max_instances)
        self.tokenizer: Tokenizer = tokenizer
        self.passage_length_limit = passage_length_limit

    def examples(self, file: Path) -> Iterator[PassageQuestion]:
        counts: Counter[str] = Counter()
        ids: set[str] = set()
        for article in _loaded(file).records("data"):
            for paragraph in article.records("paragraphs"):
                yield from self._questions(paragraph, counts, ids)
        if not counts.total():
            raise DataError("this file contains no question", path=file)
        _log.info(
            "%s: %s; answers extended to word boundaries: %d",
            file,
            plural(counts["questions"], "question"),
            counts["widened"],
        )
        if counts["unanswerable"]:
            _log.info("%s: without an answer: %d", file, counts["unanswerable"])
        if counts["left out"]:
            _log.info(
                "%s: skipped %s with passages longer than %s",
                file,
                plural(counts["left out"], "question"),
                plural(self.passage_length_limit or 0, "word"),
            )

    def inputs(self, file: Path) -> Iterator[PredictionInput[PassageQuestion]]:
        """Yield the questions of a file; answers are not required."""
        ids: set[str] = set()
        for article in _loaded(file).records("data"):
            titles = {key: value for key, value in article.values.items() if key != "paragraphs"}
            for paragraph in article.records("paragraphs"):
                passage = self._tokenized(paragraph, "context")
                for entry in paragraph.records("qas"):
                    example = self._unlabeled(_named(entry), passage, ids)
                    fields = {**titles, **other_fields(entry.values, ("id", "question"))}
                    yield PredictionInput(example, fields)

    def recognizes(self, sample: FileSample) -> bool:
        """Return whether a file is one JSON document, with `data` if the sample shows it."""
        first = sample.object()
        return FileFormat.JSON in sample.formats() and (first is None or "data" in first)

    def _questions(
        self, paragraph: Record, counts: Counter[str], ids: set[str]
    ) -> Iterator[PassageQuestion]:
        passage = self._tokenized(paragraph, "context")
        limit = self.passage_length_limit
        for entry in paragraph.records("qas"):
            if limit is not None and len(passage.words) > limit:
                counts["left out"] += 1
                continue
            example = self._question(_named(entry), passage, counts, ids)
            counts["questions"] += 1
            counts["unanswerable"] += example.span is None
            yield example

    def _question(
        self, entry: Record, passage: TokenizedText, counts: Counter[str], ids: set[str]
    ) -> PassageQuestion:
        if _is_impossible(entry):
            return replace(self._unlabeled(entry, passage, ids), answers=())
        answers = [_answer(answer, passage) for answer in entry.records("answers")]
        if not answers:
            raise entry.error(
                "'answers' is empty; mark a question without an answer with 'is_impossible': true"
            )
        (start, text), _ = Counter(answers).most_common(1)[0]
        span = passage.span(start, start + len(text))
        if span is None:
            raise entry.error(f"the answer {text!r} contains no word of the passage")
        counts["widened"] += _is_wider(span, start, text, passage, entry)
        texts = tuple(text for _, text in answers)
        return replace(self._unlabeled(entry, passage, ids), answers=texts, span=span)

    def _unlabeled(self, entry: Record, passage: TokenizedText, ids: set[str]) -> PassageQuestion:
        question, name = self._tokenized(entry, "question"), _text(entry, "id")
        with entry.located():
            example = PassageQuestion(name, passage, question, None, None, entry.path)
        if example.id in ids:
            raise entry.error(f"an earlier question has the id {example.id!r}; ids must be unique")
        ids.add(example.id)
        return example

    def _tokenized(self, entry: Record, key: str) -> TokenizedText:
        text = _text(entry, key)
        with entry.located():
            return TokenizedText.of(text, self.tokenizer)


def _is_impossible(entry: Record) -> bool:
    """Return whether a question is marked as one without an answer, as in version 2.0."""
    value = entry.values.get("is_impossible", False)
    if not isinstance(value, bool):
        raise entry.error(f"'is_impossible' is {shown(value)}; expected true or false")
    if value and entry.values.get("answers"):
        raise entry.error("'is_impossible' is true, but 'answers' is not empty")
    return value


def _answer(entry: Record, passage: TokenizedText) -> tuple[int, str]:
    """Return the first character of an answer, and its text."""
    start = entry.value("answer_start")
    if not isinstance(start, int) or isinstance(start, bool):
        raise entry.error(f"'answer_start' is {shown(start)}; expected a whole number")
    text = _text(entry, "text")
    if start < 0:
        raise entry.error(f"'answer_start' is {start}; expected 0 or more")
    text_at_start = passage.text[start : start + len(text)]
    if text_at_start != text:
        raise entry.error(
            f"the answer {text!r} is not at character {start} of the passage, "
            f"where {text_at_start!r} is"
        )
    return start, text


def _is_wider(span: Span, start: int, text: str, passage: TokenizedText, entry: Record) -> bool:
    first, end = passage.characters(span)
    snapped = passage.text[first:end]
    if snapped == text.strip():
        return False
    _log.debug("%s: the answer %r at %d was extended to %r", entry.where, text, start, snapped)
    return True


def _loaded(file: Path) -> Record:
    try:
        with reading(file) as opened:
            document = json.load(decompressed(opened, file))
    except json.JSONDecodeError as error:
        raise DataError(f"invalid JSON: {error.msg}", path=file, line=error.lineno) from error
    except RecursionError as error:
        raise DataError("invalid JSON: too many brackets inside each other", path=file) from error
    except UnicodeDecodeError as error:
        raise DataError("not valid UTF-8 text: convert the file to UTF-8", path=file) from error
    return record_of(document, Record({}, file))


def _named(entry: Record) -> Record:
    """Return the same record, called by its id as well in messages."""
    return replace(entry, where=f"{entry.where} (question {_text(entry, 'id')!r})")


def _text(entry: Record, key: str) -> str:
    text = entry.text(key)
    with entry.located():
        require_characters(key, text)
    return text
