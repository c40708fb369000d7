"""Texts with labels from files of your own."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Annotated, ClassVar, final

from elmo_framework.config.types import Count, Default
from elmo_framework.data.formats.file_format import FileFormat
from elmo_framework.data.formats.records import Record
from elmo_framework.data.reader import DatasetReader
from elmo_framework.data.record_reader import RecordReader
from elmo_framework.data.tokenizer import Tokenizer
from elmo_framework.errors import DataError
from elmo_framework.tasks.classification.example import ClassifiedText
from elmo_framework.tasks.classification.folder_reader import has_label_folders


@final
@DatasetReader.register("text_classification_json")
class TextClassificationReader(RecordReader[ClassifiedText]):
    """Reads a text and its label a line: JSON objects, or a table by the names of its columns.

    A file called `.csv` has commas and quotation marks, one called `.tsv` or `.txt` has tabs;
    their first line names the columns. Every other file has a JSON object a line.

    Args:
        tokenizer: what splits a text into words.
        text_key: the name of the text.
        label_key: the name of the label, which is a string or a whole number; -1 is one too.
        max_sequence_length: after how many words a text is cut; null for never.
    """

    example_type = ClassifiedText
    formats: ClassVar[Collection[FileFormat]] = (FileFormat.TABLE, FileFormat.JSON_LINES)

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
        self._text_key, self._label_key = text_key, label_key
        self._max_sequence_length = max_sequence_length

    def files(self, path: Path) -> Sequence[Path]:
        """Return the files of a path.

        Raises:
            DataError: there are none, or they are texts in the folders of their labels.
        """
        if has_label_folders(path):
            reader = "dataset_reader.type 'text_classification_folder'"
            raise DataError(f"this folder holds a folder for each label; use {reader}", path=path)
        return super().files(path)

    def examples(self, file: Path) -> Iterator[ClassifiedText]:
        """Yield the texts of a file."""
        return map(self._example, self.records(file))

    @property
    def input_keys(self) -> Sequence[str]:
        """The name of the text."""
        return (self._text_key,)

    def unlabeled(self, record: Record) -> ClassifiedText:
        """Make an example of a text, which may be empty."""
        words = record.words(self._text_key, self.tokenizer, may_be_empty=True)
        return ClassifiedText(words[: self._max_sequence_length], None)

    def _example(self, record: Record) -> ClassifiedText:
        words = record.words(self._text_key, self.tokenizer)
        label = record.label(self._label_key)
        return ClassifiedText(words[: self._max_sequence_length], label)
