"""Classified texts by the names of their values."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, final

from annotated_types import Gt

from elmo_framework.common.component import Default
from elmo_framework.data.reader import DatasetReader, FileReader
from elmo_framework.data.records import Record, read_records
from elmo_framework.data.tokenizer import Tokenizer

from .example import ClassifiedText


@final
@DatasetReader.register("labelled_text_json")
class JsonTextReader(FileReader[ClassifiedText]):
    """Reads a JSON object a line, such as `{"text": "What a film!", "label": "positive"}`.

    A label is a string or a whole number; other keys are not looked at. A file called `.csv`,
    `.tsv` or `.txt` is a table instead, whose first line names the columns.

    Args:
        tokenizer: what splits a text into words.
        text_key: the key that holds the text.
        label_key: the key that holds the label.
        max_instances: how many texts are read; null for all.
    """

    example_type = ClassifiedText

    def __init__(
        self,
        tokenizer: Annotated[Tokenizer, Default("spacy")],
        text_key: str = "text",
        label_key: str = "label",
        max_instances: Annotated[int, Gt(0)] | None = None,
    ) -> None:
        super().__init__(max_instances)
        self.tokenizer: Tokenizer = tokenizer
        self._text_key, self._label_key = text_key, label_key

    def examples(self, file: Path) -> Iterator[ClassifiedText]:
        """Yield the texts of a file."""
        return map(self._example, read_records(file))

    def _example(self, record: Record) -> ClassifiedText:
        words = self.tokenizer.words(record.text(self._text_key))
        if not words:
            raise record.error(f"{self._text_key!r} holds no word; remove the line")
        return ClassifiedText(tuple(words), record.label(self._label_key))
