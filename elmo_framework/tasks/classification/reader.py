"""Read labeled texts from JSON lines, tables, and folders with one file per text."""

from __future__ import annotations

import codecs
import logging
from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Annotated, Any, final

from elmo_framework.config.types import Count, Default
from elmo_framework.data.formats.compressed import decompressed, reading
from elmo_framework.data.formats.file_format import FileFormat
from elmo_framework.data.formats.records import Record
from elmo_framework.data.formats.text_files import data_files, is_visible
from elmo_framework.data.inputs import PredictionInput
from elmo_framework.data.reader import DatasetReader, RecordReader
from elmo_framework.data.tokenizer import Tokenizer
from elmo_framework.errors import DataError, allowed
from elmo_framework.tasks.classification.task import ClassifiedText, TextT


class TextReader(RecordReader[TextT]):
    """Reads one text and its target per line, from JSON objects or a table with a header.

    A `.csv` file has commas (or semicolons) and quotation marks, a `.tsv` or `.txt` file has tabs;
    the first line names the columns. All other files have one JSON object per line.

    Args:
        tokenizer: tokenizer of the texts.
        text_key: the key or column of the text.
        target_key: the key or column of what is to be predicted.
        only: read only the records with these values of these keys or columns.
        skip_incomplete: skip records whose text or target is empty, rather than refuse the file;
            the log reports how many.
        max_sequence_length: truncate texts to this number of words; null for no limit.
    """

    formats = (FileFormat.TABLE, FileFormat.JSON_LINES)
    all_left_out = "no record has the values of `only`, or all are skipped as incomplete"

    def __init__(
        self,
        tokenizer: Tokenizer,
        *,
        text_key: str,
        target_key: str,
        only: Mapping[str, str],
        skip_incomplete: bool,
        max_sequence_length: int | None,
        max_instances: int | None,
    ) -> None:
        super().__init__(max_instances)
        self.tokenizer: Tokenizer = tokenizer
        self.input_keys = (text_key,)
        self._text_key, self._target_key, self._only = text_key, target_key, only
        self._required_keys = (text_key, target_key) if skip_incomplete else ()
        self._max_sequence_length = max_sequence_length

    def files(self, path: Path) -> Sequence[Path]:
        if has_label_folders(path):
            reader = "dataset_reader.type 'text_classification_folder'"
            raise DataError(f"this folder has one folder per label; use {reader}", path=path)
        return super().files(path)

    @abstractmethod
    def target(self, record: Record) -> Any:
        """Return what is to be predicted.

        Raises:
            DataError: it is missing, or of another type.
        """

    def examples(self, file: Path) -> Iterator[TextT]:
        for record in self.filled_records(file, self._required_keys, self._only):
            words = record.words(self._text_key, self.tokenizer)
            yield self._text(words, self.target(record))

    def unlabeled(self, record: Record) -> TextT:
        words = record.words(self._text_key, self.tokenizer, may_be_empty=True)
        return self._text(words, None)

    def _text(self, words: tuple[str, ...], target: Any) -> TextT:
        text: TextT = self.example_type(words[: self._max_sequence_length], target, words)
        return text


@final
@DatasetReader.register("text_classification_json")
class TextClassificationReader(TextReader[ClassifiedText]):
    """Reads one text and its label per line, from JSON objects or a table with a header.

    Args:
        label_key: the key or column of the label: a string or a whole number, also a negative one.
        skip_incomplete: skip records whose text or label is empty, rather than refuse the file; the
            log reports how many.
    """

    example_type = ClassifiedText

    def __init__(
        self,
        tokenizer: Annotated[Tokenizer, Default("spacy")],
        only: Annotated[dict[str, str], Default({})],
        text_key: str = "text",
        label_key: str = "label",
        skip_incomplete: bool = False,
        max_sequence_length: Count | None = None,
        max_instances: Count | None = None,
    ) -> None:
        super().__init__(
            tokenizer,
            text_key=text_key,
            target_key=label_key,
            only=only,
            skip_incomplete=skip_incomplete,
            max_sequence_length=max_sequence_length,
            max_instances=max_instances,
        )

    def target(self, record: Record) -> str:
        return record.label(self._target_key)


_log = logging.getLogger(__name__)


@final
@DatasetReader.register("text_classification_folder")
class FolderTextClassificationReader(DatasetReader[ClassifiedText]):
    """Reads `folder/LABEL/*.txt`: one text per file, in a folder that is named after its label.

    Files need no suffix, and may end with `.gz`, `.bz2`, `.xz` or `.zst`. Hidden files and folders
    are skipped. Texts are ordered by label, then by file name. For a file or a pattern such as
    `folder/*/a*.txt` the label is the name of the folder that contains the file.

    Args:
        tokenizer: tokenizer of the texts.
        labels: the folders to read, of a pattern too; null for all.
        encoding: the encoding of the files, such as `utf-8` or `latin-1`.
        max_sequence_length: truncate texts to this number of words; null for no limit.
        max_instances: maximum number of texts to read, evenly over the labels; null for all.
    """

    example_type = ClassifiedText
    formats = ()

    def __init__(
        self,
        tokenizer: Annotated[Tokenizer, Default("spacy")],
        labels: list[str] | None = None,
        encoding: str = "utf-8",
        max_sequence_length: Count | None = None,
        max_instances: Count | None = None,
    ) -> None:
        try:
            codecs.lookup(encoding)
        except LookupError as error:
            raise ValueError(
                f"encoding is {encoding!r}, which is not an encoding of Python"
            ) from error
        self.tokenizer: Tokenizer = tokenizer
        self._labels, self._encoding = labels, encoding
        self._max_sequence_length, self._max_instances = max_sequence_length, max_instances

    def read(self, path: Path) -> Iterator[ClassifiedText]:
        for label, files in _evenly(self._by_label(path), self._max_instances).items():
            for file in files:
                yield self._text(file, label)

    def read_inputs(self, path: Path) -> Iterator[PredictionInput[ClassifiedText]]:
        """Yield the texts of a folder of labels, or of a folder of files, with their names."""
        if path.is_dir() and not _folders(path):
            for file in data_files(path):
                yield PredictionInput(self._text(file, None), {"file": str(file)})
            return
        # Files of a pattern need no label here.
        by_label = self._by_label(path) if path.is_dir() else _by_folder(path)
        for label, files in by_label.items():
            for file in files:
                fields = {"file": str(file), "label": label}
                yield PredictionInput(self._text(file, None), fields)

    def files(self, path: Path) -> list[Path]:
        if path.is_dir() and not _folders(path):
            return data_files(path)
        return list(chain.from_iterable(self._by_label(path).values()))

    def _by_label(self, path: Path) -> dict[str, list[Path]]:
        """Return the files of each label that is read, sorted."""
        if not path.is_dir():
            by_folder = _by_folder(path)
            return {label: by_folder[label] for label in self._selected(by_folder, "file", path)}
        folders = {folder.name: folder for folder in _folders(path)}
        if not folders:
            expected = "expected a folder for each label, with one text per file"
            raise DataError(f"found no folder; {expected}", path=path)
        labels = self._selected(folders, "folder", path)
        if files := [file for file in path.iterdir() if is_visible(file) and file.is_file()]:
            _log.warning("%s: skipped %d files outside the folders of labels", path, len(files))
        return {label: _texts(folders[label]) for label in labels}

    def _selected(self, labels: Collection[str], what: str, path: Path) -> list[str]:
        """Return the labels to read, sorted; raise a `DataError` if there is nothing for one."""
        for label in self._labels or ():
            if label not in labels:
                raise DataError(
                    f"no {what} for the label {label!r}; {allowed(label, labels)}", path=path
                )
        return sorted(labels if self._labels is None else self._labels)

    def _text(self, file: Path, label: str | None) -> ClassifiedText:
        with reading(file) as opened:
            content = decompressed(opened, file).read()
        try:
            text = content.removeprefix(codecs.BOM_UTF8).decode(self._encoding)
            words = tuple(self.tokenizer.words(text))
        except UnicodeDecodeError as error:
            position = f"{content[error.start : error.start + 1]!r} at byte {error.start}"
            message = f"not valid {self._encoding} text ({position}); set the reader's encoding"
            raise DataError(message, path=file) from error
        except DataError as error:
            raise DataError(str(error), path=file) from error
        if not words:
            raise DataError("this file has no words; remove it", path=file)
        return ClassifiedText(words[: self._max_sequence_length], label, whole=words)


def has_label_folders(path: Path) -> bool:
    """Return whether a folder contains only folders of text files, the input of this reader."""
    if not path.is_dir():
        return False
    entries = list(filter(is_visible, path.iterdir()))
    return bool(entries) and all(
        entry.is_dir() and any(file.suffix in (".txt", "") for file in _files(entry))
        for entry in entries
    )


def _by_folder(path: Path) -> dict[str, list[Path]]:
    """Return the files of a pattern by the names of their folders, sorted."""
    by_folder: dict[str, list[Path]] = {}
    for file in data_files(path):
        by_folder.setdefault(file.absolute().parent.name, []).append(file)
    return dict(sorted(by_folder.items()))


def _folders(path: Path) -> list[Path]:
    return sorted(entry for entry in path.iterdir() if is_visible(entry) and entry.is_dir())


def _files(folder: Path) -> list[Path]:
    return sorted(entry for entry in folder.iterdir() if is_visible(entry) and entry.is_file())


def _texts(folder: Path) -> list[Path]:
    if inner := _folders(folder):
        message = (
            f"found the folder {inner[0].name!r} in the folder of a label; expected only files"
        )
        raise DataError(message, path=folder)
    if not (files := _files(folder)):
        message = "found no file for this label; remove the folder, or exclude it with 'labels'"
        raise DataError(message, path=folder)
    return files


def _evenly(by_label: Mapping[str, Sequence[Path]], limit: int | None) -> dict[str, list[Path]]:
    """Return the files in order; if there are more than `limit`, equally many of each label."""
    in_turn = (file for row in zip_longest(*by_label.values()) for file in row if file is not None)
    selection = set(islice(in_turn, limit))
    return {
        label: [file for file in files if file in selection] for label, files in by_label.items()
    }
