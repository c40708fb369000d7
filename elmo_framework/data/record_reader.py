"""Readers whose examples are records: JSON objects, or the rows of a table."""

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
    """Makes an example of each record.

    Attributes:
        input_type: of the values under `input_keys`.
    """

    input_type: ClassVar[type] = str

    @property
    @abstractmethod
    def input_keys(self) -> Sequence[str]:
        """The names of the values that every example without labels is made of."""

    @property
    def other_keys(self) -> Sequence[str]:
        """The names of values that it is made of, too, where a record has them; none by default."""
        return ()

    @abstractmethod
    def unlabeled(self, record: Record) -> ExampleT:
        """Make an example without labels.

        Raises:
            DataError: a value is missing, or is something else.
        """

    def takes(self, values: Mapping[str, Any]) -> bool:
        """Tell whether an example can be made of some values."""
        return all(isinstance(values.get(key), self.input_type) for key in self.input_keys)

    def input(self, record: Record) -> PredictionInput[ExampleT]:
        """Make an example without labels, next to all that the record holds besides.

        Raises:
            DataError: as `unlabeled`.
        """
        used = (*self.input_keys, *self.other_keys)
        return PredictionInput(self.unlabeled(record), other_fields(record.values, used))

    def records(self, file: Path) -> Iterator[Record]:
        """Yield the records of a file.

        Raises:
            DataError: a line is no record, or there is none.
        """
        return read_records(file)

    def inputs(self, file: Path) -> Iterator[PredictionInput[ExampleT]]:
        """Yield what is to be predicted for: every record of a file."""
        return map(self.input, self.records(file))
