"""Files of records: JSON objects, a line each, and tables with the names of their columns."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmo_framework.common.errors import DataError, allowed, shown
from elmo_framework.data.paths import data_files, read_lines


class _Tabs(csv.excel_tab):
    """Tables with tabs: quotation marks are a part of the text, and need not come in pairs."""

    quoting = csv.QUOTE_NONE


_TABLES: dict[str, type[csv.Dialect]] = {".csv": csv.excel, ".tsv": _Tabs, ".txt": _Tabs}


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

    def text(self, name: str) -> str:
        """Return a value that is a string.

        Raises:
            DataError: there is none of that name, or it is no string.
        """
        value = self._value(name)
        if not isinstance(value, str):
            raise self.error(f"{name!r} is {shown(value)}; expected a string")
        return value

    def label(self, name: str) -> str:
        """Return a value that is a label: a string, or a whole number as a string.

        Raises:
            DataError: there is none of that name, or it is neither, or it is empty.
        """
        value = self._value(name)
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise self.error(f"{name!r} is {shown(value)}; expected a string or a whole number")
        if value == "":
            raise self.error(f"{name!r} is empty")
        return str(value)

    def error(self, message: str) -> DataError:
        """Return an error that says where this record stands."""
        return DataError(message, path=self.path, line=self.line)

    def _value(self, name: str) -> Any:
        if name not in self.values:
            raise self.error(f"there is no {name!r}; {allowed(name, self.values)}")
        return self.values[name]


def read_records(path: Path) -> Iterator[Record]:
    """Yield the records of a file, or of the files of a folder or a pattern.

    What a file holds is told from its name: a table whose first line names the columns, with
    commas and quotation marks (`.csv`) or with tabs alone (`.tsv`, `.txt`); else a JSON object
    a line. Blank lines are left out.

    Raises:
        DataError: a line is no record, or a file has none.
    """
    for file in data_files(path):
        dialect = _TABLES.get(file.suffix.lower())
        records = _objects(file) if dialect is None else _rows(file, dialect)
        first = next(records, None)
        if first is None:
            raise DataError("this file holds no example", path=file)
        yield first
        yield from records


def json_object(text: str) -> dict[str, Any]:
    """Return a JSON object.

    Raises:
        DataError: the text is none.
    """
    try:
        value = json.loads(text)
    except ValueError as error:
        raise DataError(f"no JSON object: {error}") from error
    if not isinstance(value, dict):
        raise DataError(f"expected a JSON object, not {shown(value)}")
    return value


def _objects(path: Path) -> Iterator[Record]:
    for number, line in read_lines(path):
        if not line.strip():
            continue
        try:
            values = json_object(line)
        except DataError as error:
            raise DataError(str(error), path=path, line=number) from error
        yield Record(values, path, number)


def _rows(path: Path, dialect: type[csv.Dialect]) -> Iterator[Record]:
    rows = _cells(path, dialect)
    _, names = next(rows, (0, []))
    for line, cells in rows:
        if len(cells) != len(names):
            found = f"found {len(cells)} columns, expected {len(names)} as in the first line"
            raise DataError(found, path=path, line=line)
        yield Record(dict(zip(names, cells, strict=True)), path, line)


def _cells(path: Path, dialect: type[csv.Dialect]) -> Iterator[tuple[int, list[str]]]:
    """Yield the cells of each line that is not blank, with its number."""
    lines = (f"{line}\n" for _, line in read_lines(path))
    table = csv.reader(lines, dialect, strict=True)
    try:
        for cells in table:
            if any(cells):
                yield table.line_num, cells
    except csv.Error as error:
        raise DataError(f"no line of a table: {error}", path=path, line=table.line_num) from error
