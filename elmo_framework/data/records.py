"""Files of records: JSON objects, a line each, and tables with the names of their columns."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from elmo_framework.common.errors import DataError, found, shown
from elmo_framework.data.columns import Row, check_width
from elmo_framework.data.compressed import data_suffix
from elmo_framework.data.paths import NO_EXAMPLE, at_least_one, filled_lines, placed, read_lines

Separator: TypeAlias = Literal["tab", "comma"]
"""What stands between the columns of a table."""

_TABLES: dict[str, Separator] = {".csv": "comma", ".tsv": "tab", ".txt": "tab"}


class _Tabs(csv.excel_tab):
    """Tables with tabs: quotation marks are a part of the text, and need not come in pairs."""

    quoting = csv.QUOTE_NONE


_DIALECTS: dict[Separator, type[csv.Dialect]] = {"comma": csv.excel, "tab": _Tabs}


@dataclass(frozen=True, slots=True)
class Record:
    """The named values of one example.

    Attributes:
        values: by name.
        path: of the file.
        line: where it stands there; its last line if it takes several.
    """

    values: Mapping[str, Any]
    path: Path
    line: int

    def value(self, name: str) -> Any:
        """Return a value as it stands in the file.

        Raises:
            DataError: there is none of that name.
        """
        with placed(self.path, self.line):
            return value_of(self.values, name)

    def text(self, name: str) -> str:
        """Return a value that is a string.

        Raises:
            DataError: there is none of that name, or it is no string.
        """
        with placed(self.path, self.line):
            return string_of(self.values, name)

    def label(self, name: str) -> str:
        """Return a value that is a label: a string, or a whole number as a string.

        Raises:
            DataError: there is none of that name, or it is neither, or it is empty.
        """
        value = self.value(name)
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise self.error(f"{name!r} is {shown(value)}; expected a string or a whole number")
        if value == "":
            raise self.error(f"{name!r} is empty")
        return str(value)

    def error(self, message: str) -> DataError:
        """Return an error that says where this record stands."""
        return DataError(message, path=self.path, line=self.line)


def read_records(path: Path) -> Iterator[Record]:
    """Yield the records of a file.

    What it holds is told from its name: a table whose first line names the columns, with commas
    and quotation marks (`.csv`) or with tabs alone (`.tsv`, `.txt`); else a JSON object a line.
    Blank lines are left out.

    Raises:
        DataError: a line is no record, or there is none.
    """
    separator = _TABLES.get(data_suffix(path))
    if separator is not None:
        yield from _rows(path, separator)
        return
    for number, line in filled_lines(path):
        with placed(path, number):
            values = json_object(line)
        yield Record(values, path, number)


def read_cells(path: Path, separator: Separator | None = None) -> Iterator[Row]:
    """Yield the rows of a table, all as wide as the first; one of blanks alone has no cells.

    Args:
        path: of the file.
        separator: what stands between columns: tabs, or commas beside values that may be quoted;
            None for commas if the name ends with `.csv`, else tabs.

    Raises:
        DataError: the file cannot be read, or a row is none of this table.
    """
    known = separator or _TABLES.get(data_suffix(path), "tab")
    lines = (f"{line}\n" for _, line in read_lines(path))
    table = csv.reader(lines, _DIALECTS[known], strict=True)
    first: Row | None = None
    try:
        for cells in table:
            row = Row(table.line_num, tuple(cells) if any(map(str.strip, cells)) else ())
            if row.columns:
                first = first or row
                check_width(row, first, path)
            yield row
    except csv.Error as error:
        raise DataError(f"no row of a table: {error}", path=path, line=table.line_num) from error


def json_object(text: str) -> dict[str, Any]:
    """Return a JSON object.

    Raises:
        DataError: the text is none.
    """
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise DataError(f"no JSON object: {error.msg}, column {error.colno}") from error
    if not isinstance(value, dict):
        raise DataError(f"expected a JSON object, not {shown(value)}")
    return value


def value_of(held: Mapping[str, Any], key: str) -> Any:
    """Return what stands under a key.

    Raises:
        DataError: there is no such key; says which there are, and the nearest.
    """
    if key not in held:
        raise DataError(f"there is no key {key!r}; {found(key, held)}")
    return held[key]


def string_of(held: Mapping[str, Any], key: str) -> str:
    """Return the string under a key.

    Raises:
        DataError: there is no such key, or it holds something else.
    """
    value = value_of(held, key)
    if not isinstance(value, str):
        raise DataError(f"{key!r} is {shown(value)}; expected a string")
    return value


def words_of(held: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """Return the list of strings under a key.

    Raises:
        DataError: there is no such key, or it holds something else.
    """
    value = value_of(held, key)
    if not is_words(value):
        raise DataError(f"{key!r} is {shown(value)}; expected a list of strings")
    return tuple(value)


def is_words(value: object) -> bool:
    """Return whether a value is a list of strings."""
    return isinstance(value, list) and all(isinstance(word, str) for word in value)


def _rows(path: Path, separator: Separator) -> Iterator[Record]:
    rows = (row for row in read_cells(path, separator) if row.columns)
    names = next(rows, Row(0, ())).columns
    for row in at_least_one(rows, NO_EXAMPLE, path):
        yield Record(dict(zip(names, row.columns, strict=True)), path, row.line)
