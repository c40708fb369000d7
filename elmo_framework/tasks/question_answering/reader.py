"""The JSON files of SQuAD 1.1."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar, final

from elmo_framework.config.types import Count, Default
from elmo_framework.console import plural
from elmo_framework.data.formats.compressed import decompressed, reading
from elmo_framework.data.formats.file_format import FileFormat, FileSample
from elmo_framework.data.formats.records import require_characters, value_of
from elmo_framework.data.inputs import PredictionInput, other_fields
from elmo_framework.data.reader import DatasetReader, FileReader
from elmo_framework.data.tokenizer import Tokenizer
from elmo_framework.errors import DataError, shown
from elmo_framework.tasks.question_answering.example import PassageQuestion, Span, TokenizedText

_log = logging.getLogger(__name__)

ValueT = TypeVar("ValueT", str, int)
_KINDS = {str: "a string", int: "a whole number"}


@final
@DatasetReader.register("squad")
class SquadReader(FileReader[PassageQuestion]):
    """Reads questions with their passages: the official JSON of version 1.1.

    The answer that is learned is the one that most people gave, of several the first. Where it
    does not begin and end with a word, the words that it touches are learned; how often is
    written to the log. All answers count in the scores. No two questions of a file have one id.

    Args:
        tokenizer: splits passages and questions.
        passage_length_limit: questions about passages of more words are left out; null for
            none. For training: scores are to be over all questions, so state a
            `validation_dataset_reader` without it.
        max_instances: how many questions are read; null for all.
    """

    example_type = PassageQuestion
    formats: ClassVar[Collection[FileFormat]] = (FileFormat.JSON,)

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
        """Yield the questions of a file."""
        seen: Counter[str] = Counter()
        ids: set[str] = set()
        for article in _loaded(file).entries("data"):
            for paragraph in article.entries("paragraphs"):
                yield from self._questions(paragraph, seen, ids)
        if not seen.total():
            raise DataError("there is no question in this file", path=file)
        _log.info(
            "%s: %s; answers that do not begin and end with words, and were widened: %d",
            file,
            plural(seen["questions"], "question"),
            seen["widened"],
        )
        if seen["left out"]:
            _log.info(
                "%s: left out %s, whose passages are longer than %s",
                file,
                plural(seen["left out"], "question"),
                plural(self.passage_length_limit or 0, "word"),
            )

    def inputs(self, file: Path) -> Iterator[PredictionInput[PassageQuestion]]:
        """Yield the questions of a file, which need no answers."""
        ids: set[str] = set()
        for article in _loaded(file).entries("data"):
            titles = {key: value for key, value in article.held.items() if key != "paragraphs"}
            for paragraph in article.entries("paragraphs"):
                passage = self._tokenized(paragraph, "context")
                for entry in paragraph.entries("qas"):
                    example = self._unlabeled(entry.named(), passage, ids)
                    fields = {**titles, **other_fields(entry.held, ("id", "question"))}
                    yield PredictionInput(example, fields)

    def recognizes(self, sample: FileSample) -> bool:
        """Tell whether a file is one JSON document, with `data` where that can be seen."""
        first = sample.object()
        return FileFormat.JSON in sample.formats() and (first is None or "data" in first)

    def _questions(
        self, paragraph: _Entry, seen: Counter[str], ids: set[str]
    ) -> Iterator[PassageQuestion]:
        passage = self._tokenized(paragraph, "context")
        limit = self.passage_length_limit
        for entry in paragraph.entries("qas"):
            if limit is not None and len(passage.words) > limit:
                seen["left out"] += 1
                continue
            example = self._question(entry.named(), passage, seen, ids)
            seen["questions"] += 1
            yield example

    def _question(
        self, entry: _Entry, passage: TokenizedText, seen: Counter[str], ids: set[str]
    ) -> PassageQuestion:
        answers = [_answer(answer, passage) for answer in entry.entries("answers")]
        if not answers:
            raise entry.error("'answers' is empty; SQuAD 1.1 has an answer to every question")
        (start, text), _ = Counter(answers).most_common(1)[0]
        span = passage.span(start, start + len(text))
        if span is None:
            raise entry.error(f"no word of the passage stands in the answer {text!r}")
        seen["widened"] += _is_wider(span, start, text, passage, entry)
        texts = tuple(text for _, text in answers)
        return replace(self._unlabeled(entry, passage, ids), answers=texts, span=span)

    def _unlabeled(self, entry: _Entry, passage: TokenizedText, ids: set[str]) -> PassageQuestion:
        question = self._tokenized(entry, "question")
        try:
            example = PassageQuestion(entry.value("id", str), passage, question, None, None)
        except ValueError as error:
            raise entry.error(str(error)) from error
        if example.id in ids:
            raise entry.error(f"a question before has the id {example.id!r}; give each its own")
        ids.add(example.id)
        return example

    def _tokenized(self, entry: _Entry, key: str) -> TokenizedText:
        text = entry.value(key, str)
        try:
            return TokenizedText.of(text, self.tokenizer)
        except DataError as error:
            raise entry.error(str(error)) from error


def _answer(entry: _Entry, passage: TokenizedText) -> tuple[int, str]:
    """Return where an answer begins, and its text."""
    start, text = entry.value("answer_start", int), entry.value("text", str)
    if start < 0:
        raise entry.error(f"'answer_start' is {start}; expected 0 or more")
    found = passage.text[start : start + len(text)]
    if found != text:
        raise entry.error(
            f"the answer {text!r} does not stand at character {start} of the passage, "
            f"where {found!r} is"
        )
    return start, text


def _is_wider(span: Span, start: int, text: str, passage: TokenizedText, entry: _Entry) -> bool:
    first, end = passage.characters(span)
    snapped = passage.text[first:end]
    if snapped == text.strip():
        return False
    _log.debug("%s: the answer %r at %d was widened to %r", entry.where, text, start, snapped)
    return True


def _loaded(file: Path) -> _Entry:
    try:
        with reading(file) as opened:
            held = json.load(decompressed(opened, file))
    except json.JSONDecodeError as error:
        raise DataError(f"no JSON: {error.msg}", path=file, line=error.lineno) from error
    except UnicodeDecodeError as error:
        raise DataError("not valid UTF-8 text: convert the file to UTF-8", path=file) from error
    return _Entry.of(held, file, "")


@dataclass(frozen=True, slots=True)
class _Entry:
    """An object of a file, and where it stands."""

    file: Path
    where: str
    held: dict[str, Any]

    @classmethod
    def of(cls, held: Any, file: Path, where: str) -> _Entry:
        entry = cls(file, where, held if isinstance(held, dict) else {})
        if not isinstance(held, dict):
            raise entry.error(f"expected an object, found {shown(held)}")
        return entry

    def error(self, message: str) -> DataError:
        return DataError(f"{self.where}: {message}" if self.where else message, path=self.file)

    def named(self) -> _Entry:
        """Return the same object, called by its id as well in messages."""
        identity = self.value("id", str)
        return _Entry(self.file, f"{self.where} (question {identity!r})", self.held)

    def value(self, key: str, kind: type[ValueT]) -> ValueT:
        found = self._get(key)
        if not isinstance(found, kind) or isinstance(found, bool):
            raise self.error(f"{key!r} is {shown(found)}; expected {_KINDS[kind]}")
        try:
            require_characters(key, found)
        except DataError as error:
            raise self.error(str(error)) from error
        return found

    def entries(self, key: str) -> Iterator[_Entry]:
        found = self._get(key)
        if not isinstance(found, list):
            raise self.error(f"{key!r} is {shown(found)}; expected a list")
        inside = f"{self.where}.{key}" if self.where else key
        return (
            _Entry.of(held, self.file, f"{inside}[{index}]") for index, held in enumerate(found)
        )

    def _get(self, key: str) -> Any:
        try:
            return value_of(self.held, key)
        except DataError as error:
            raise self.error(str(error)) from error
