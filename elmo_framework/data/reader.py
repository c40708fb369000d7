"""The family of dataset readers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

from elmo_framework.common.registry import Registrable
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
