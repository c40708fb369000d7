"""The family of dataset readers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from elmo_framework.config.registry import Registrable, members
from elmo_framework.config.types import Count
from elmo_framework.data.formats.file_format import FileFormat, FileSample
from elmo_framework.data.formats.text_files import NO_EXAMPLE, data_files, require_nonempty
from elmo_framework.data.inputs import PredictionInput
from elmo_framework.data.tokenizer import Tokenizer

ExampleT = TypeVar("ExampleT")


class DatasetReader(Registrable, ABC, Generic[ExampleT]):
    """Reads the examples of one task from a file or a folder: no tensors, no vocabulary.

    Attributes:
        example_type: the dataclass that `read` yields; a model's task must take the same.
        tokenizer: how raw text becomes words; None where files hold words already.
        formats: of the files that it reads; any unless a reader says otherwise.
    """

    example_type: ClassVar[type]
    tokenizer: Tokenizer | None = None
    formats: ClassVar[Collection[FileFormat]] = tuple(FileFormat)

    @abstractmethod
    def read(self, path: Path) -> Iterable[ExampleT]:
        """Return the examples of `path`; what is long is read as they are asked for.

        Raises:
            DataError: the data is not in this format; says the file and the line.
        """

    def read_inputs(self, path: Path) -> Iterable[PredictionInput[ExampleT]]:
        """Return what is to be predicted for: every example of `path`, without its labels.

        Labels may be missing, and may be any. By default what `read` returns.

        Raises:
            DataError: the data is not in this format; says the file and the line.
        """
        return (PredictionInput(example, {}) for example in self.read(path))

    def files(self, path: Path) -> Sequence[Path]:
        """Return the files that `read` reads for a path, in order.

        Raises:
            DataError: there are none.
        """
        return data_files(path)

    def recognizes(self, sample: FileSample) -> bool:
        """Tell from the beginning of a file whether this reader is meant to read it."""
        return not sample.formats().isdisjoint(self.formats)


def readers_of(example_type: type) -> dict[str, type[DatasetReader[Any]]]:
    """Return the readers whose examples are of a type, by their registered names."""
    return {
        name: member
        for name, member in members(DatasetReader).items()
        if issubclass(member, DatasetReader) and member.example_type is example_type
    }


class FileReader(DatasetReader[ExampleT]):
    """Reads one file after the other, until there are as many examples as are asked for.

    Attributes:
        all_left_out: what is said of data all of which the reader leaves out.

    Args:
        max_instances: how many examples are read, over all files; null for all.
    """

    all_left_out: ClassVar[str] = "all that stands here is left out by the reader"

    def __init__(self, max_instances: Count | None = None) -> None:
        self.max_instances = max_instances

    def read(self, path: Path) -> Iterator[ExampleT]:
        """Yield the examples of a file, or of the files of a folder or a pattern.

        Raises:
            DataError: a file is not in this format, or holds nothing, or all that the files hold is
                left out.
        """
        files = (self.examples(file) for file in self.files(path))
        examples = islice(chain.from_iterable(files), self.max_instances)
        return require_nonempty(examples, self.all_left_out, path)

    def read_inputs(self, path: Path) -> Iterator[PredictionInput[ExampleT]]:
        """Yield what is to be predicted for, in the files that `read` would read.

        Nothing is left out, whatever the reader leaves out of the data for training.

        Raises:
            DataError: a file is not in this format, or holds nothing.
        """
        inputs = chain.from_iterable(self.inputs(file) for file in self.files(path))
        return require_nonempty(inputs, NO_EXAMPLE, path)

    def inputs(self, file: Path) -> Iterator[PredictionInput[ExampleT]]:
        """Yield what is to be predicted for in one file; the examples as they are by default.

        Raises:
            DataError: the file is not in this format.
        """
        return (PredictionInput(example, {}) for example in self.examples(file))

    @abstractmethod
    def examples(self, file: Path) -> Iterator[ExampleT]:
        """Yield the examples of one file: none where the reader leaves out all that it holds.

        Raises:
            DataError: the file is not in this format, or holds nothing.
        """
