"""Base class of readers for records: JSON objects, or the rows of a table."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from elmo_framework.data.formats.records import Record, read_records
from elmo_framework.data.inputs import PredictionInput, other_fields
from elmo_framework.data.reader import FileReader

ExampleT = TypeVar("ExampleT")


class RecordReader(FileReader[ExampleT]):
    """Converts each record to an example.

    Attributes:
        input_type: the type of the values of `input_keys`.
    """

    input_type: ClassVar[type] = str

    @property
    @abstractmethod
    def input_keys(self) -> Sequence[str]:
        """The keys that an example without labels requires."""

    @property
    def other_keys(self) -> Sequence[str]:
        """The optional keys of an example without labels; none by default."""
        return ()

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
        return PredictionInput(self.unlabeled(record), other_fields(record.values, used))

    def records(self, file: Path) -> Iterator[Record]:
        """Yield the records of a file.

        Raises:
            DataError: a line is not a record, or the file is empty.
        """
        return read_records(file)

    def inputs(self, file: Path) -> Iterator[PredictionInput[ExampleT]]:
        """Yield a prediction input for every record of a file."""
        return map(self.input, self.records(file))
