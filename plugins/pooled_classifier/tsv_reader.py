"""Classified texts from two tab-separated columns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, final

from annotated_types import Gt

from elmo_framework.config import Default
from elmo_framework.data import DatasetReader, FileReader, PredictionInput, Tokenizer
from elmo_framework.data.formats import FileFormat, error_context, nonblank_lines, require_nonempty

from .example import ClassifiedText


@final
@DatasetReader.register("labelled_text_tsv")
class TsvTextReader(FileReader[ClassifiedText]):
    """Reads one text and its label per line, separated by a tab.

    Args:
        tokenizer: splits a text into words.
        has_header: whether the first line of a file names the columns.
        max_instances: the maximum number of texts to read; null for all.
    """

    example_type = ClassifiedText
    formats = (FileFormat.TABLE,)

    def __init__(
        self,
        tokenizer: Annotated[Tokenizer, Default("spacy")],
        has_header: bool = False,
        max_instances: Annotated[int, Gt(0)] | None = None,
    ) -> None:
        super().__init__(max_instances)
        self.tokenizer: Tokenizer = tokenizer
        self._has_header = has_header

    def examples(self, file: Path) -> Iterator[ClassifiedText]:
        """Yield the texts of a file."""
        for number, line in self._lines(file):
            with error_context(file, number):
                text = self._text(line)
            yield text

    def inputs(self, file: Path) -> Iterator[PredictionInput[ClassifiedText]]:
        """Yield the texts of a file for `elmo predict`; the column of labels may be missing."""
        for number, line in self._lines(file):
            text, *others = line.split("\t")
            with error_context(file, number):
                example = ClassifiedText(self._words(text), None)
            fields = {"label": others[0].strip()} if others else {}
            yield PredictionInput(example, fields)

    def _lines(self, file: Path) -> Iterator[tuple[int, str]]:
        lines = nonblank_lines(file)
        if self._has_header:
            next(lines)
        return require_nonempty(lines, "there is no text below the header", file)

    def _text(self, line: str) -> ClassifiedText:
        columns = line.split("\t")
        if len(columns) != 2:
            raise ValueError(f"found {len(columns)} columns; expected a text, a tab and a label")
        words, label = self._words(columns[0]), columns[1].strip()
        if not label:
            raise ValueError("the label is empty")
        return ClassifiedText(words, label)

    def _words(self, text: str) -> tuple[str, ...]:
        words = tuple(self.tokenizer.words(text))
        if not words:
            raise ValueError(f"the text {text!r} has no words; remove the line")
        return words
