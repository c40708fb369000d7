"""Tables of sentences and of vectors; the only module that imports pyarrow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from os import fspath
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self, final

import numpy as np
from numpy.typing import NDArray

from elmo_framework.errors import DataError, allowed, shown
from elmo_framework.io.extras import import_extra

EXTRA = "parquet"


TABLE_SUFFIXES = (".parquet", ".arrow", ".feather")
"""The files that are read as tables."""


class Columns(NamedTuple):
    """The columns of a table that are read.

    Attributes:
        text: strings, or lists of strings, which are tokenized already.
        id: strings or integers; None for `id`, if there is such a column.
    """

    text: str = "text"
    id: str | None = None


@final
@dataclass(frozen=True)
class RowGroup:
    """Consecutive rows of a table; those of `ids` are None without such a column."""

    path: Path
    texts: list[str | list[str]]
    ids: list[str | int] | None

    @property
    def digest(self) -> str:
        return blake2b(repr((self.texts, self.ids)).encode(), digest_size=16).hexdigest()


@final
class TableFile:
    """A Parquet or Arrow file, of which one group of rows is read at a time.

    Args:
        path: the file; the record batches of an Arrow file are its groups.

    Raises:
        DataError: it is neither.
        RunError: pyarrow is not installed.
    """

    def __init__(self, path: Path) -> None:
        pa: Any = import_extra("pyarrow", EXTRA)
        self._path, self._pa, self._batches, self._file = path, pa, list[Any](), None
        try:
            if path.suffix == ".parquet":
                self._file = import_extra("pyarrow.parquet", EXTRA).ParquetFile(fspath(path))
                self._names: list[str] = self._file.schema_arrow.names
            else:
                self._batches, self._names = self._read_arrow()
        except pa.ArrowException as error:
            raise DataError(f"not a readable table: {error}", path=path) from error

    def __len__(self) -> int:
        return len(self._batches) if self._file is None else int(self._file.num_row_groups)

    def read(self, group: int, columns: Columns) -> RowGroup:
        """Read a group of rows.

        Raises:
            DataError: a column is missing, or has another type.
        """
        names = [self._name(columns.text, "--text-column")]
        if columns.id is not None:
            names.append(self._name(columns.id, "--id-column"))
        elif "id" in self._names:
            names.append("id")
        try:
            if self._file is None:
                table = self._pa.table(self._batches[group].select(names))
            else:
                table = self._file.read_row_group(group, columns=names)
        except self._pa.ArrowException as error:
            raise DataError(f"rows cannot be read: {error}", path=self._path) from error
        texts, *ids = (table.column(name).to_pylist() for name in names)
        self._check(names[0], texts, "strings or lists of strings", _is_text)
        for values in ids:
            self._check(names[1], values, "strings or integers of 64 bits with a sign", _is_id)
        return RowGroup(self._path, [text or "" for text in texts], ids[0] if ids else None)

    def _read_arrow(self) -> tuple[list[Any], list[str]]:
        """Return the record batches, which stay on the disk, and the names of columns."""
        file = self._pa.memory_map(fspath(self._path))
        try:
            opened = self._pa.ipc.open_file(file)
            batches = [opened.get_batch(index) for index in range(opened.num_record_batches)]
        except self._pa.ArrowInvalid:  # a stream, as Hugging Face datasets write it
            file.seek(0)
            opened = self._pa.ipc.open_stream(file)
            batches = list(opened)
        return batches, opened.schema.names

    def _name(self, name: str, flag: str) -> str:
        if name not in self._names:
            raise DataError(
                f"{flag}: no column {name!r}; {allowed(name, self._names)}", path=self._path
            )
        return name

    def _check(
        self, name: str, values: list[Any], expected: str, is_valid: Callable[[Any], bool]
    ) -> None:
        for value in values:
            if not is_valid(value):
                found = "a row without a value" if value is None else shown(value)
                raise DataError(
                    f"column {name!r} has {found}; expected {expected}", path=self._path
                )


def _is_text(value: Any) -> bool:
    """Return whether a value is text; a missing one is a blank line."""
    is_list = isinstance(value, list) and all(isinstance(word, str) for word in value)
    return value is None or isinstance(value, str) or is_list


def _is_id(value: Any) -> bool:
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, str) or (is_integer and -(2**63) <= value < 2**63)


def require_pyarrow() -> None:
    """Raise RunError if pyarrow is not installed."""
    import_extra("pyarrow", EXTRA)


@final
class ParquetVectors:
    """Write a Parquet file with a row per sentence.

    | column | content |
    |---|---|
    | `id` | as in the input, or the place of the sentence |
    | `tokens` | the words |
    | `vectors` | lists of a fixed size, nested in the order of the axes |
    | `scales` | of int8 only: the factor of each vector |

    Args:
        path: the file.
        is_pooled: whether a sentence has one vector; otherwise `vectors` is a list over words.
        metadata: of the file.
    """

    def __init__(self, path: Path, *, is_pooled: bool, metadata: dict[str, str]) -> None:
        self._pa: Any = import_extra("pyarrow", EXTRA)
        self._parquet: Any = import_extra("pyarrow.parquet", EXTRA)
        self._path, self._is_pooled, self._metadata = path, is_pooled, metadata
        self._writer: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._writer is not None:
            self._writer.close()

    def write(
        self,
        ids: Sequence[str | int | None],
        tokens: Sequence[Sequence[str]],
        arrays: dict[str, NDArray[Any]],
    ) -> None:
        """Write sentences as one row group.

        Args:
            ids: of the sentences.
            tokens: of the sentences.
            arrays: by column, "words ..." of all the sentences, or "sentences ..." if pooled.
        """
        offsets = _offsets(map(len, tokens))
        columns = {"id": self._pa.array(ids), "tokens": self._lists(tokens)}
        for name, array in arrays.items():
            values = self._nested(array)
            columns[name] = (
                values
                if self._is_pooled
                else self._pa.ListArray.from_arrays(self._pa.array(offsets), values)
            )
        table = self._pa.table(columns).replace_schema_metadata(self._metadata)
        if self._writer is None:
            # Vectors repeat nothing, so that a dictionary would only cost time.
            self._writer = self._parquet.ParquetWriter(
                self._path, table.schema, use_dictionary=["id", "tokens.list.element"]
            )
        self._writer.write_table(table, row_group_size=max(1, len(ids)))

    def _lists(self, tokens: Sequence[Sequence[str]]) -> Any:
        return self._pa.array(tokens, type=self._pa.list_(self._pa.string()))

    def _nested(self, array: NDArray[Any]) -> Any:
        values = self._pa.array(array.reshape(-1))
        for size in reversed(array.shape[1:]):
            values = self._pa.FixedSizeListArray.from_arrays(values, size)
        return values


def _offsets(lengths: Iterable[int]) -> NDArray[np.int32]:
    return np.concatenate([[0], np.fromiter(lengths, np.int64).cumsum()]).astype(np.int32)
