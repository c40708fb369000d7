"""The family of dataset readers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, ClassVar, Generic, TypeVar

from annotated_types import Gt

from elmo_framework.common.registry import Registrable
from elmo_framework.data.paths import data_files
from elmo_framework.data.tokenizer import Tokenizer

ExampleT = TypeVar("ExampleT")


class DatasetReader(Registrable, ABC, Generic[ExampleT]):
    """Reads the examples of one task from a file or a folder: no tensors, no vocabulary.

    Attributes:
        example_type: the dataclass that `read` yields; a model's task must take the same.
        tokenizer: how raw text becomes words; None where files hold words already.
    """

    example_type: ClassVar[type]
    tokenizer: Tokenizer | None = None

    @abstractmethod
    def read(self, path: Path) -> Iterable[ExampleT]:
        """Return the examples of `path`; what is long is read as they are asked for.

        Raises:
            DataError: the data is not in this format; says the file and the line.
        """


class FileReader(DatasetReader[ExampleT]):
    """Reads one file after the other, until there are as many examples as are asked for.

    Args:
        max_instances: how many examples are read; null for all.
    """

    def __init__(self, max_instances: Annotated[int, Gt(0)] | None = None) -> None:
        self.max_instances = max_instances

    def read(self, path: Path) -> Iterator[ExampleT]:
        """Yield the examples of a file, or of the files of a folder or a pattern.

        Raises:
            DataError: a file is not in this format, or holds nothing.
        """
        files = (self.examples(file) for file in data_files(path))
        return islice(chain.from_iterable(files), self.max_instances)

    @abstractmethod
    def examples(self, file: Path) -> Iterator[ExampleT]:
        """Yield the examples of one file: none where the reader leaves out all that it holds.

        Raises:
            DataError: the file is not in this format, or holds nothing.
        """
