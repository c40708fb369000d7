"""Files of records: JSON objects, a line each, and tables with the names of their columns."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from elmo_framework.data.formats.columns import Row, check_width
from elmo_framework.data.formats.compressed import data_suffix
from elmo_framework.data.formats.text_files import (
    NO_EXAMPLE,
    error_context,
    nonblank_lines,
    read_lines,
    require_nonempty,
)
from elmo_framework.data.tokenizer import Tokenizer
from elmo_framework.errors import DataError, found, shown

Separator: TypeAlias = Literal["tab", "comma"]
"""What stands between the columns of a table."""

_TABLES: dict[str, Separator] = {".csv": "comma", ".tsv": "tab", ".txt": "tab"}
_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_SEPARATORS = re.compile(r"[;,|\t]")
_MAX_CELL = 2**31 - 1


class _Tabs(csv.excel_tab):
    """Tables with tabs: quotation marks are a part of the text, and need not come in pairs."""

    quoting = csv.QUOTE_NONE


_DIALECTS: dict[Separator, type[csv.Dialect]] = {"comma": csv.excel, "tab": _Tabs}


@dataclass(frozen=True, slots=True)
class Record:
    """The named values of one example.

    Attributes:
        values: by name.
        path: of the file; None of a record that was read from none.
        line: where it stands there; its last line if it takes several.
    """

    values: Mapping[str, Any]
    path: Path | None = None
    line: int | None = None

    def value(self, name: str) -> Any:
        """Return a value as it stands in the file.

        Raises:
            DataError: there is none of that name.
        """
        with error_context(self.path, self.line):
            return value_of(self.values, name)

    def text(self, name: str) -> str:
        """Return a value that is a string.

        Raises:
            DataError: there is none of that name, or it is no string.
        """
        with error_context(self.path, self.line):
            return string_of(self.values, name)

    def label(self, name: str) -> str:
        """Return a value that is a label: a string, without blanks around it, or a whole number.

        Raises:
            DataError: there is none of that name, or it is neither, or it is empty.
        """
        value = self.value(name)
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise self.error(f"{name!r} is {shown(value)}; expected a string or a whole number")
        label = str(value).strip()
        if not label:
            raise self.error(f"{name!r} is empty")
        return label

    def words(
        self, name: str, tokenizer: Tokenizer, *, may_be_empty: bool = False
    ) -> tuple[str, ...]:
        """Return the words of a value that is a text.

        Raises:
            DataError: there is none of that name, or it is no string, or the tokenizer refuses it,
                or it holds no word and must not be empty.
        """
        text = self.text(name)
        with error_context(self.path, self.line):
            words = tuple(tokenizer.words(text))
        if not (words or may_be_empty):
            raise self.error(f"{name!r} holds no word; remove the line")
        return words

    def error(self, message: str) -> DataError:
        """Return an error that says where this record stands."""
        return DataError(message, path=self.path, line=self.line)


def read_records(path: Path, *, table: bool = False) -> Iterator[Record]:
    """Yield the records of a file.

    What it holds is told from its name: a table whose first line names the columns, with commas
    and quotation marks (`.csv`) or with tabs alone (`.tsv`, `.txt`); else a JSON object a line.
    Blank lines are left out.

    Args:
        path: of the file.
        table: whether a file with another name is a table, too, with tabs.

    Raises:
        DataError: a line is no record, or there is none.
    """
    separator = _TABLES.get(data_suffix(path), "tab" if table else None)
    return read_objects(path) if separator is None else _rows(path, separator)


def read_objects(path: Path) -> Iterator[Record]:
    """Yield the JSON objects of a file, one on each line; blank lines are left out.

    Raises:
        DataError: a line is no object, or there is none.
    """
    for number, line in nonblank_lines(path):
        with error_context(path, number):
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
    csv.field_size_limit(_MAX_CELL)  # that of all tables of a process; else 131,072 characters
    table = csv.reader(lines, _DIALECTS[known], strict=True)
    first: Row | None = None
    start = 1
    try:
        for cells in table:
            row = Row(table.line_num, tuple(cells) if any(map(str.strip, cells)) else ())
            if row.columns:
                first = first or row
                check_width(row, first, path)
            yield row
            start = table.line_num + 1
    except csv.Error as error:
        hint = "; is a quotation mark that opens here not closed?" if known == "comma" else ""
        raise DataError(f"no row of a table: {error}{hint}", path=path, line=start) from error


def column_names(header: Row, path: Path) -> tuple[str, ...]:
    """Return the names of columns, without blanks around them.

    Raises:
        DataError: two are alike, or they look as if the file has other separators, or JSON objects.
    """
    names = tuple(map(str.strip, header.columns))
    message = None
    if names[0].startswith("{"):
        message = "this is read as a table, for its name; call a file of JSON objects .jsonl"
    elif len(names) == 1 and _SEPARATORS.search(names[0]):
        expected = "commas stand between columns in a .csv file, tabs in others"
        message = f"found 1 column, called {names[0]!r}; {expected}"
    elif twice := [name for name in names if name and names.count(name) > 1]:
        message = f"more than one column is called {twice[0]!r}"
    if message is not None:
        raise DataError(message, path=path, line=header.line)
    return names


def json_object(text: str) -> dict[str, Any]:
    """Return a JSON object of whole characters.

    Raises:
        DataError: the text is none, or see `require_characters`.
    """
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise DataError(f"no JSON object: {error.msg}, column {error.colno}") from error
    if not isinstance(value, dict):
        raise DataError(f"expected a JSON object, not {shown(value)}")
    for key, held in value.items() if _HALF.search(text) else ():
        require_characters(key, held)
    return value


def require_characters(key: str, value: Any) -> None:
    r"""Refuse half a pair, such as `\ud83d`, of those that mean one character together.

    Raises:
        DataError: it stands in a key or its value, which no file of UTF-8 could hold.
    """
    try:
        json.dumps([key, value], ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = error.object[error.start]
        raise DataError(f"{key!r} holds half a character: {half!r} without its pair") from error


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
    header = next(rows, None)
    names = () if header is None else column_names(header, path)
    for row in require_nonempty(rows, NO_EXAMPLE, path):
        yield Record(dict(zip(names, row.columns, strict=True)), path, row.line)
