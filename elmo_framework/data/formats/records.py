"""Read records: JSON lines, and tables with column names."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
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

Separator: TypeAlias = Literal["tab", "comma", "semicolon"]
"""The separator of the columns of a table."""

_TABLES = (".csv", ".tsv", ".txt")
_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_SEPARATORS = re.compile(r"[;,|\t]")
_MAX_CELL = 2**31 - 1


_DIALECTS: dict[Separator, dict[str, Any]] = {
    "comma": {"delimiter": ","},
    "semicolon": {"delimiter": ";"},
    "tab": {"delimiter": "\t", "quoting": csv.QUOTE_NONE},
}
"""In tables with tabs, quotation marks are part of the text, and need not come in pairs."""


@dataclass(frozen=True, slots=True)
class Record:
    """The named values of one example.

    Attributes:
        values: by name.
        path: of the file, if any.
        line: in the file; the last one if the record has several lines.
        where: its location in a JSON document: `data[0].paragraphs[2]`.
    """

    values: Mapping[str, Any]
    path: Path | None = None
    line: int | None = None
    where: str = ""

    def value(self, name: str) -> Any:
        """Return a value unchanged.

        Raises:
            DataError: it is missing.
        """
        with self.located():
            return value_of(self.values, name)

    def text(self, name: str) -> str:
        """Return a value that is a string.

        Raises:
            DataError: it is missing, or not a string.
        """
        with self.located():
            return string_of(self.values, name)

    def label(self, name: str) -> str:
        """Return a value that is a label: a stripped string or an integer.

        Raises:
            DataError: it is missing, empty, or of another type.
        """
        value = self.value(name)
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise self.error(f"{name!r} is {shown(value)}; expected a string or a whole number")
        label = str(value).strip()
        if not label:
            raise self.error(f"{name!r} is empty; skip_incomplete of the reader skips such rows")
        return label

    def number(self, name: str) -> float:
        """Return a value that is a finite number, or a string that is one.

        Raises:
            DataError: it is missing, or not a number.
        """
        value = self.value(name)
        try:
            number = math.nan if isinstance(value, bool) else float(value)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if not math.isfinite(number):
            raise self.error(f"{name!r} is {shown(value)}; expected a number")
        return number

    def labels(self, name: str, separator: str) -> tuple[str, ...]:
        """Return a value that is any number of labels, each once: a list, or a string of them.

        Args:
            name: of the value.
            separator: between the labels of a string.

        Raises:
            DataError: it is missing, or neither; or a label is empty or repeated.
        """
        value = self.value(name)
        if isinstance(value, str):
            value = value.split(separator) if value.strip() else []
        if not isinstance(value, list):
            raise self.error(f"{name!r} is {shown(value)}; expected a list of labels")
        labels = [replace(self, values={name: each}).label(name) for each in value]
        if len({*labels}) < len(labels):
            raise self.error(f"{name!r} has a label more than once: {shown(value)}")
        return tuple(labels)

    def has(self, values: Mapping[str, str]) -> bool:
        """Return whether the record has these values, compared as text.

        Raises:
            DataError: one is missing.
        """
        return all(str(self.value(name)) == value for name, value in values.items())

    def is_filled(self, names: Iterable[str]) -> bool:
        """Return whether none of these values is missing or empty.

        Null, an empty list and a string of spaces are empty.
        """
        values = [self.values.get(name) for name in names]
        return all(str("" if value in (None, []) else value).strip() for value in values)

    def words(
        self, name: str, tokenizer: Tokenizer, *, may_be_empty: bool = False
    ) -> tuple[str, ...]:
        """Return the words of a value that is a text.

        Raises:
            DataError: it is missing, not a string, rejected by the tokenizer, or has no words
                although it must not be empty.
        """
        text = self.text(name)
        with self.located():
            words = tuple(tokenizer.words(text))
        if not (words or may_be_empty):
            raise self.error(f"{name!r} has no words; remove the line")
        return words

    def records(self, name: str) -> Iterator[Record]:
        """Return the objects of a value that is a list of objects.

        Raises:
            DataError: it is missing, or not a list; at its turn, an item that is not an object.
        """
        items = self.value(name)
        if not isinstance(items, list):
            raise self.error(f"{name!r} is {shown(items)}; expected a list")
        inside = f"{self.where}.{name}" if self.where else name
        return (
            record_of(item, replace(self, where=f"{inside}[{index}]"))
            for index, item in enumerate(items)
        )

    def error(self, message: str) -> DataError:
        """Return an error with the file, line and location of this record."""
        located = f"{self.where}: {message}" if self.where else message
        return DataError(located, path=self.path, line=self.line)

    @contextmanager
    def located(self) -> Iterator[None]:
        """Turn a ValueError or DataError inside into one of this record, unless it names a file."""
        try:
            yield
        except (DataError, ValueError) as error:
            if isinstance(error, DataError) and error.path is not None:
                raise
            raise self.error(str(error)) from error


def record_of(value: object, place: Record) -> Record:
    """Return a value of a JSON document as a record with the location of `place`.

    Raises:
        DataError: it is not an object.
    """
    if not isinstance(value, dict):
        raise place.error(f"expected an object, found {shown(value)}")
    return replace(place, values=value)


def read_records(path: Path, *, table: bool = False) -> Iterator[Record]:
    """Yield the records of a file; blank lines are skipped.

    The suffix determines the format: a table with column names in the first line, with commas or
    semicolons and quotation marks (`.csv`) or with tabs (`.tsv`, `.txt`); otherwise JSON lines.

    Args:
        path: of the file.
        table: whether files with other suffixes are tables with tabs too.

    Raises:
        DataError: a line is not a record, or the file is empty.
    """
    is_table = table or data_suffix(path) in _TABLES
    return _rows(path) if is_table else read_objects(path)


def read_objects(path: Path) -> Iterator[Record]:
    """Yield the JSON objects of a file, one per line; blank lines are skipped.

    Raises:
        DataError: a line is not a JSON object, or the file is empty.
    """
    for number, line in nonblank_lines(path):
        with error_context(path, number):
            values = json_object(line)
        yield Record(values, path, number)


def read_cells(path: Path, separator: Separator | None = None) -> Iterator[Row]:
    """Yield the rows of a table, all with the same number of columns; a blank row has no cells.

    Args:
        path: of the file.
        separator: tabs, or commas or semicolons between values that may be quoted; by default as
            of `separator_of`.

    Raises:
        DataError: the file cannot be read, or a row is invalid.
    """
    lines: Iterator[str] = (f"{line}\n" for _, line in read_lines(path))
    if separator is None:
        before = list(_through_first_filled(lines))
        separator = separator_of(path, before[-1] if before else "")
        lines = chain(before, lines)
    csv.field_size_limit(_MAX_CELL)  # of the whole process; the default is 131,072 characters
    table = csv.reader(lines, strict=True, **_DIALECTS[separator])
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
        problem = str(error)
        if "new-line" in problem:
            problem = r"a carriage return (\r) without a line feed; end lines with \n or \r\n"
        elif separator != "tab":
            problem += "; is a quotation mark not closed?"
        raise DataError(f"invalid row of a table: {problem}", path=path, line=start) from error


def separator_of(path: Path, header: str) -> Separator:
    """Return the separator of a table by its suffix and its first line.

    Spreadsheets write semicolons to `.csv` files where the comma is the decimal mark, so a first
    line with semicolons and no comma between values has semicolons as separators.
    """
    if data_suffix(path) != ".csv":
        return "tab"
    has_comma = len(cells_of(header, "comma")) > 1
    return "semicolon" if ";" in header and not has_comma else "comma"


def cells_of(line: str, separator: Separator) -> list[str]:
    """Return the cells of the first line of a table, which may end within a quoted cell."""
    dialect = _DIALECTS[separator]
    try:
        return next(csv.reader([line], **dialect), [])
    except csv.Error:  # reported when the table is read
        return line.split(dialect["delimiter"])


def column_names(header: Row, path: Path) -> tuple[str, ...]:
    """Return the stripped names of columns.

    Raises:
        DataError: two are equal, or the file seems to have other separators or JSON objects.
    """
    names = tuple(map(str.strip, header.columns))
    message = None
    if names[0].startswith("{"):
        message = "read as a table because of its suffix; rename a file of JSON objects to .jsonl"
    elif len(names) == 1 and _SEPARATORS.search(names[0]):
        expected = "a .csv file has commas or semicolons between columns, others have tabs"
        message = f"found 1 column, called {names[0]!r}; {expected}"
    elif duplicates := [name for name in names if name and names.count(name) > 1]:
        message = f"more than one column is called {duplicates[0]!r}"
    if message is not None:
        raise DataError(message, path=path, line=header.line)
    return names


def json_object(text: str) -> dict[str, Any]:
    """Parse a JSON object.

    Raises:
        DataError: the text is not a JSON object, or see `require_characters`.
    """
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise DataError(f"not a JSON object: {error.msg}, column {error.colno}") from error
    except ValueError as error:
        raise DataError("not a JSON object: a number has too many digits") from error
    except RecursionError as error:
        raise DataError("not a JSON object: too many brackets inside each other") from error
    if not isinstance(value, dict):
        raise DataError(f"expected a JSON object, not {shown(value)}")
    for key, inner in value.items() if _HALF.search(text) else ():
        require_characters(key, inner)
    return value


def require_characters(key: str, value: Any) -> None:
    r"""Refuse lone surrogates such as `\ud83d`, which cannot be encoded in UTF-8.

    Raises:
        DataError: a key or its value has one.
    """
    try:
        json.dumps([key, value], ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = error.object[error.start]
        raise DataError(f"{key!r} has the lone surrogate {half!r}") from error


def value_of(values: Mapping[str, Any], key: str) -> Any:
    """Return the value of a key.

    Raises:
        DataError: it is missing; with the keys present, and the nearest.
    """
    if key not in values:
        raise DataError(f"missing key {key!r}; {found(key, values)}")
    return values[key]


def string_of(values: Mapping[str, Any], key: str) -> str:
    """Return the value of a key, which must be a string.

    Raises:
        DataError: it is missing, or not a string.
    """
    value = value_of(values, key)
    if not isinstance(value, str):
        raise DataError(f"{key!r} is {shown(value)}; expected a string")
    return value


def words_of(values: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """Return the value of a key, which must be a list of strings.

    Raises:
        DataError: it is missing, or not a list of strings.
    """
    value = value_of(values, key)
    if not is_words(value):
        raise DataError(f"{key!r} is {shown(value)}; expected a list of strings")
    return tuple(value)


def is_words(value: object) -> bool:
    """Return whether a value is a list of strings, possibly empty."""
    return isinstance(value, list) and all(isinstance(word, str) for word in value)


def _through_first_filled(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield line
        if line.strip():
            return


def _rows(path: Path) -> Iterator[Record]:
    rows = (row for row in read_cells(path) if row.columns)
    header = next(rows, None)
    names = () if header is None else column_names(header, path)
    for row in require_nonempty(rows, NO_EXAMPLE, path):
        yield Record(dict(zip(names, row.columns, strict=True)), path, row.line)
