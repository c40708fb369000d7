"""The family of dataset readers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, Protocol, TypeVar, runtime_checkable

import numpy as np
from annotated_types import Gt
from numpy.typing import NDArray

from elmo_framework.common.registry import Registrable
from elmo_framework.data.paths import at_least_one, data_files
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


@runtime_checkable
class Divisible(Protocol):
    """Examples of which some can be had by their numbers, without a look at the others."""

    @property
    def num_sentences(self) -> int:
        """How many there are; each is a sentence."""

    def part(self, numbers: NDArray[np.int64]) -> Iterable[Any]:
        """Return the examples of some numbers."""


class FileReader(DatasetReader[ExampleT]):
    """Reads one file after the other, until there are as many examples as are asked for.

    Attributes:
        all_left_out: what is said of data all of which the reader leaves out.

    Args:
        max_instances: how many examples are read, over all files; null for all.
    """

    all_left_out: ClassVar[str] = "all that stands here is left out by the reader"

    def __init__(self, max_instances: Annotated[int, Gt(0)] | None = None) -> None:
        self.max_instances = max_instances

    def read(self, path: Path) -> Iterator[ExampleT]:
        """Yield the examples of a file, or of the files of a folder or a pattern.

        Raises:
            DataError: a file is not in this format, or holds nothing, or all that the files hold is
                left out.
        """
        files = (self.examples(file) for file in data_files(path))
        examples = islice(chain.from_iterable(files), self.max_instances)
        return at_least_one(examples, self.all_left_out, path)

    @abstractmethod
    def examples(self, file: Path) -> Iterator[ExampleT]:
        """Yield the examples of one file: none where the reader leaves out all that it holds.

        Raises:
            DataError: the file is not in this format, or holds nothing.
        """
