"""Dataset readers: base classes, for files and for records of files."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from elmo_framework.config.registry import Registrable, member_classes, registered_name
from elmo_framework.config.types import Count
from elmo_framework.console import plural
from elmo_framework.data.formats.file_format import (
    FileFormat,
    FileSample,
    described,
    look_like_sentences,
)
from elmo_framework.data.formats.records import Record, read_objects, read_records
from elmo_framework.data.formats.text_files import (
    NO_EXAMPLE,
    ItemT,
    data_files,
    error_context,
    require_nonempty,
)
from elmo_framework.data.inputs import PredictionInput, other_fields, raw_texts
from elmo_framework.data.tokenizer import Tokenizer
from elmo_framework.errors import DataError

_log = logging.getLogger(__name__)

ExampleT = TypeVar("ExampleT")


class DatasetReader(Registrable, ABC, Generic[ExampleT]):
    """Reads the examples of one task from a file or a folder, without tensors or vocabularies.

    Attributes:
        example_type: the dataclass that `read` yields, and that the task of the model requires.
        tokenizer: splits raw text into words; None if files are tokenized.
        formats: of the files that it reads; all by default.
    """

    class_attributes = ("example_type",)

    example_type: ClassVar[type]
    tokenizer: Tokenizer | None = None
    formats: ClassVar[Collection[FileFormat]] = tuple(FileFormat)

    @abstractmethod
    def read(self, path: Path) -> Iterable[ExampleT]:
        """Return the examples of `path`, read lazily if they are many.

        Raises:
            DataError: the data is not in this format; with file and line.
        """

    def read_inputs(self, path: Path) -> Iterable[PredictionInput[ExampleT]]:
        """Return the examples of `path` without labels, as prediction inputs.

        The labels in the data may be missing or invalid. By default, use the examples of `read`.

        Raises:
            DataError: the data is not in this format; with file and line.
        """
        return (PredictionInput(example, {}) for example in self.read(path))

    def files(self, path: Path) -> Sequence[Path]:
        """Return the files that `read` reads for a path, in order.

        Raises:
            DataError: there are none.
        """
        return data_files(path)

    def recognizes(self, sample: FileSample) -> bool:
        """Return whether the first lines of a file look like the format of this reader."""
        return not sample.formats().isdisjoint(self.formats)


def readers_of(
    example_type: type, formats: Collection[FileFormat] | None = None
) -> dict[str, type[DatasetReader[Any]]]:
    """Return the readers of an example type that read one of `formats`, by registered name."""
    return {
        name: reader
        for name, reader in member_classes(DatasetReader).items()
        if reader.example_type is example_type
        and (formats is None or not set(formats).isdisjoint(reader.formats))
    }


class FileReader(DatasetReader[ExampleT]):
    """Reads the files of a data path in order.

    Attributes:
        all_left_out: the message if the reader skips all examples of the data.

    Args:
        max_instances: maximum number of examples over all files; null for all.
    """

    all_left_out: ClassVar[str] = "the reader skips all examples of this data"

    def __init__(self, max_instances: Count | None = None) -> None:
        self.max_instances = max_instances

    def read(self, path: Path) -> Iterator[ExampleT]:
        """Yield the examples of a file, or of the files of a folder or a pattern.

        Raises:
            DataError: a file is not in this format or empty, or all examples are skipped.
        """
        examples = islice(self._of_files(self.examples, path), self.max_instances)
        return require_nonempty(examples, self.all_left_out, path)

    def read_inputs(self, path: Path) -> Iterator[PredictionInput[ExampleT]]:
        """Yield the prediction inputs of all files, with examples that `read` skips."""
        return require_nonempty(self._of_files(self.inputs, path), NO_EXAMPLE, path)

    def _of_files(self, parse: Callable[[Path], Iterator[ItemT]], path: Path) -> Iterator[ItemT]:
        for file in self.files(path):
            with self._what_else_it_is(file), error_context(file, None):
                yield from parse(file)

    @contextmanager
    def _what_else_it_is(self, file: Path) -> Iterator[None]:
        """End errors about a file with what it looks like, if that is not what is read."""
        try:
            yield
        except DataError as error:
            looks = self._other_format(file)
            raise (error.with_end(looks) if looks else error) from error.__cause__

    def _other_format(self, file: Path) -> str | None:
        """Return what a file looks like that is in no format of this reader, if it has any."""
        if not 0 < len(self.formats) < len(FileFormat):
            return None
        try:
            sample = FileSample.of(file)
        except DataError:
            return None
        formats = sample.formats()
        is_text = not formats and look_like_sentences(sample.lines)
        if not (formats or is_text) or not formats.isdisjoint(self.formats):
            return None
        looks = "plain text" if is_text else described(formats)
        fitting = ", ".join(readers_of(self.example_type, formats))
        others = f"; of the readers of this task, these do: {fitting}" if fitting else ""
        return f"The file looks like {looks}, which {registered_name(self)!r} does not read{others}"

    def inputs(self, file: Path) -> Iterator[PredictionInput[ExampleT]]:
        """Yield the prediction inputs of one file; by default its examples.

        Raises:
            DataError: the file is not in this format.
        """
        return (PredictionInput(example, {}) for example in self.examples(file))

    @abstractmethod
    def examples(self, file: Path) -> Iterator[ExampleT]:
        """Yield the examples of one file; none if the reader skips all of them.

        Raises:
            DataError: the file is not in this format, or empty.
            ValueError, SyntaxError: the same; `read` adds the file.
        """


class RecordReader(FileReader[ExampleT]):
    """Converts each record to an example: a JSON object, or a row of a table.

    Attributes:
        input_keys: the keys that an example without labels requires.
        input_type: the type of the values of `input_keys`.
        other_keys: the optional keys of an example without labels.
    """

    input_keys: Sequence[str]
    input_type: ClassVar[type] = str
    other_keys: ClassVar[Sequence[str]] = ()

    @abstractmethod
    def unlabeled(self, record: Record) -> ExampleT:
        """Convert a record to an example without labels.

        Raises:
            DataError: a value is missing or has another type.
        """

    def takes(self, values: Mapping[str, Any]) -> bool:
        """Return whether values are sufficient for an example."""
        return all(isinstance(values.get(key), self.input_type) for key in self.input_keys)

    def input(self, record: Record) -> PredictionInput[ExampleT]:
        """Convert a record to an example without labels and the other fields.

        Raises:
            DataError: as `unlabeled`.
        """
        used = (*self.input_keys, *self.other_keys)
        fields = other_fields(record.values, used)
        texts = raw_texts(record.values, self.input_keys)
        return PredictionInput(self.unlabeled(record), fields, texts)

    def records(self, file: Path) -> Iterator[Record]:
        """Yield the records of a file.

        Raises:
            DataError: a line is not a record, or the file is empty.
        """
        is_table = FileFormat.TABLE in self.formats
        return read_records(file) if is_table else read_objects(file)

    def filled_records(
        self, file: Path, keys: Sequence[str], only: Mapping[str, str] | None = None
    ) -> Iterator[Record]:
        """Yield the records that have all values of `keys`; the log reports how many have not.

        Args:
            file: to read.
            keys: of the values.
            only: yield, and report, only records with these values.

        Raises:
            DataError: as `records`, or a key is in none of these records.
        """
        num_skipped, missing = 0, set(keys)
        first: Record | None = None
        for record in self.records(file):
            if only and not record.has(only):
                continue
            missing -= record.values.keys()
            if record.is_filled(keys):
                yield record
            else:
                num_skipped += 1
            first = first or record
        for key in keys:
            if first is not None and key in missing:
                first.value(key)  # raises with the names of the others
        if num_skipped:
            empty = " or ".join(map(repr, keys))
            _log.info("%s: skipped %s with an empty %s", file, plural(num_skipped, "record"), empty)

    def inputs(self, file: Path) -> Iterator[PredictionInput[ExampleT]]:
        return map(self.input, self.records(file))
