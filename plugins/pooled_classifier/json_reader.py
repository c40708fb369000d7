"""Classified texts from JSON lines and tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, final

from annotated_types import Gt

from elmo_framework.config import Default
from elmo_framework.data import DatasetReader, RecordReader, Tokenizer
from elmo_framework.data.formats import FileFormat, Record

from .example import ClassifiedText


@final
@DatasetReader.register("labelled_text_json")
class JsonTextReader(RecordReader[ClassifiedText]):
    """Reads one JSON object per line, such as `{"text": "What a film!", "label": "positive"}`.

    A label is a string or an integer; other keys are ignored. A `.csv`, `.tsv` or `.txt` file is
    read as a table whose first line names the columns.

    Args:
        tokenizer: splits a text into words.
        text_key: the key of the text.
        label_key: the key of the label.
        max_instances: the maximum number of texts to read; null for all.
    """

    example_type = ClassifiedText
    formats = (FileFormat.TABLE, FileFormat.JSON_LINES)

    def __init__(
        self,
        tokenizer: Annotated[Tokenizer, Default("spacy")],
        text_key: str = "text",
        label_key: str = "label",
        max_instances: Annotated[int, Gt(0)] | None = None,
    ) -> None:
        super().__init__(max_instances)
        self.tokenizer: Tokenizer = tokenizer
        self.input_keys = (text_key,)
        self._text_key, self._label_key = text_key, label_key

    def examples(self, file: Path) -> Iterator[ClassifiedText]:
        """Yield the texts of a file."""
        return map(self._example, self.records(file))

    def unlabeled(self, record: Record) -> ClassifiedText:
        """Make an example without a label for `elmo predict`; the text may be empty."""
        words = record.words(self._text_key, self.tokenizer, may_be_empty=True)
        return ClassifiedText(words, None)

    def _example(self, record: Record) -> ClassifiedText:
        words = record.words(self._text_key, self.tokenizer)
        return ClassifiedText(words, record.label(self._label_key))
