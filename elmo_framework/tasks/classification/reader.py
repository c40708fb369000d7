"""Read labeled texts from JSON lines and tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, final

from elmo_framework.config.types import Count, Default
from elmo_framework.data.formats.file_format import FileFormat
from elmo_framework.data.formats.records import Record
from elmo_framework.data.reader import DatasetReader, RecordReader
from elmo_framework.data.tokenizer import Tokenizer
from elmo_framework.errors import DataError
from elmo_framework.tasks.classification.folder_reader import has_label_folders
from elmo_framework.tasks.classification.task import ClassifiedText


@final
@DatasetReader.register("text_classification_json")
class TextClassificationReader(RecordReader[ClassifiedText]):
    """Reads one text and its label per line, from JSON objects or a table with a header.

    A `.csv` file has commas and quotation marks, a `.tsv` or `.txt` file has tabs; the first line
    names the columns. All other files have one JSON object per line.

    Args:
        tokenizer: tokenizer of the texts.
        text_key: the key or column of the text.
        label_key: the key or column of the label: a string or a whole number, also a negative one.
        max_sequence_length: truncate texts to this number of words; null for no limit.
    """

    example_type = ClassifiedText
    formats = (FileFormat.TABLE, FileFormat.JSON_LINES)

    def __init__(
        self,
        tokenizer: Annotated[Tokenizer, Default("spacy")],
        text_key: str = "text",
        label_key: str = "label",
        max_sequence_length: Count | None = None,
        max_instances: Count | None = None,
    ) -> None:
        super().__init__(max_instances)
        self.tokenizer: Tokenizer = tokenizer
        self.input_keys = (text_key,)
        self._text_key, self._label_key = text_key, label_key
        self._max_sequence_length = max_sequence_length

    def files(self, path: Path) -> Sequence[Path]:
        if has_label_folders(path):
            reader = "dataset_reader.type 'text_classification_folder'"
            raise DataError(f"this folder has one folder per label; use {reader}", path=path)
        return super().files(path)

    def examples(self, file: Path) -> Iterator[ClassifiedText]:
        return map(self._example, self.records(file))

    def unlabeled(self, record: Record) -> ClassifiedText:
        words = record.words(self._text_key, self.tokenizer, may_be_empty=True)
        return ClassifiedText(words[: self._max_sequence_length], None)

    def _example(self, record: Record) -> ClassifiedText:
        words = record.words(self._text_key, self.tokenizer)
        label = record.label(self._label_key)
        return ClassifiedText(words[: self._max_sequence_length], label)
