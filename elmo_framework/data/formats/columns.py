"""Read files with one word per line, columns of labels, and blank lines between sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from elmo_framework.console import plural
from elmo_framework.data.formats.text_files import NO_SENTENCE, read_lines
from elmo_framework.errors import DataError

Between: TypeAlias = Literal["tabs", "blanks", "tabs or blanks"]
"""The separator of cells: one tab, so that a cell may be empty or have spaces; runs of spaces
and tabs; or tabs in a line with a tab, and runs of spaces in others."""

_DOCUMENT = "-DOCSTART-"
_BREAKS = re.compile("[\t\r\n]+")
_CELL = re.compile("[^ \t]+")
_NUMBER = re.compile("[0-9]+([-.][0-9]+)?")


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a file with columns.

    Attributes:
        line: its number in the file, from 1; the last one if the row has several lines.
        columns: its cells.
    """

    line: int
    columns: tuple[str, ...]


class ColumnBlock(NamedTuple):
    """The rows of a sentence, and the comments before it, each with the number of its line."""

    rows: list[Row]
    comments: list[tuple[int, str]]


class CellError(ValueError):
    """A cell that cannot be read; `position` is its index in the column."""

    def __init__(self, position: int, message: str) -> None:
        super().__init__(message)
        self.position = position


@contextmanager
def placed_cells(path: Path, lines: Sequence[int]) -> Iterator[None]:
    """Turn a `CellError` into a DataError with file and line; `lines` has the line of each cell."""
    try:
        yield
    except CellError as error:
        raise DataError(str(error), path=path, line=lines[error.position]) from error


def columns_of(rows: Iterable[Row], names: Iterable[str]) -> dict[str, list[str]]:
    """Return the cells of each column by the names of the columns."""
    columns = zip(*(row.columns for row in rows), strict=True)
    return dict(zip(names, map(list, columns), strict=True))


def split_cells(text: str, between: Between = "blanks") -> tuple[str, ...]:
    """Split a line into cells; blanks are spaces and tabs, but not no-break spaces."""
    if between == "tabs" or (between == "tabs or blanks" and "\t" in text):
        return tuple(text.split("\t"))
    return tuple(_CELL.findall(text))


def one_cell(text: str) -> str:
    """Replace the spaces of a word or a label, which would begin another cell."""
    return "_".join(text.split()) or "_"


def one_line(text: str) -> str:
    """Replace tabs and line ends, which would begin another cell or line, by spaces."""
    return _BREAKS.sub(" ", text)


def check_width(row: Row, first: Row, path: Path) -> None:
    """Raise DataError if a row does not have as many columns as the first."""
    if len(row.columns) != len(first.columns):
        raise _unexpected(row, f"{len(first.columns)} as on line {first.line}", path)


def read_blocks(
    path: Path,
    *,
    between: Between = "blanks",
    comment: str | None = None,
    width: int | None = None,
    min_width: int = 1,
) -> Iterator[ColumnBlock]:
    """Yield the sentences of a file; a blank line ends one, and so does a comment.

    Args:
        path: of the file.
        between: the separator of columns.
        comment: the prefix of comments; None for no comments.
        width: the number of columns; None for that of the first row of the sentence.
        min_width: the minimum number of columns.

    Raises:
        DataError: the file cannot be read, a row has another width, or the file has no sentences.
    """
    is_empty, block = True, ColumnBlock([], [])
    for number, line in chain(read_lines(path), [(0, "")]):
        text = line.strip(" \t")
        is_comment = comment is not None and text.startswith(comment)
        if text and not is_comment:
            row = Row(number, split_cells(line, between))
            if len(row.columns) < min_width or width not in (None, len(row.columns)):
                expected = width or f"at least {min_width}"
                raise _unexpected(row, f"{expected} with {between} between them", path)
            block.rows.append(row)
            check_width(row, block.rows[0], path)
            continue
        if block.rows:
            yield block
            is_empty, block = False, ColumnBlock([], [])
        if is_comment:
            block.comments.append((number, text))
    if is_empty:
        raise DataError(NO_SENTENCE, path=path)


def _unexpected(row: Row, expected: str, path: Path) -> DataError:
    columns = plural(len(row.columns), "column")
    message = f"found {columns}, expected {expected}: {' '.join(row.columns)!r}"
    return DataError(message, path=path, line=row.line)


def read_sentences(path: Path) -> Iterator[list[Row]]:
    """Yield the sentences of a file with the same number of columns in all rows.

    Lines that start a document are skipped.

    Raises:
        DataError: see `read_blocks`.
    """
    first: Row | None = None
    for rows, _ in read_blocks(path, comment=_DOCUMENT):
        first = first or rows[0]
        check_width(rows[0], first, path)
        yield rows


def read_conllu(
    path: Path, *, width: int, number_column: int = 0, words_only: bool = True
) -> Iterator[ColumnBlock]:
    """Yield the words of each sentence of CoNLL-U or CoNLL-U Plus, and the comments before it.

    Sentences without words are skipped.

    Args:
        path: of the file.
        width: the number of columns.
        number_column: the column of word numbers.
        words_only: whether to skip the rows of multiword tokens (`1-2`) and empty nodes (`1.1`).

    Raises:
        DataError: see `read_blocks`, or words are not numbered 1, 2, 3 and so on.
    """
    for rows, comments in read_blocks(path, between="tabs", comment="#", width=width):
        if words := [row for row in rows if _is_word(row, number_column, path)]:
            for expected, row in enumerate(words, start=1):
                _check_number(row, expected, row.columns[number_column], path)
            yield ColumnBlock(words if words_only else rows, comments)


def conllu_metadata(block: ColumnBlock) -> dict[str, str]:
    """Return the metadata in the comments of a sentence: `# sent_id = 3` is `{"sent_id": "3"}`."""
    return dict(filter(None, (_metadata(text) for _, text in block.comments)))


def _metadata(comment: str) -> tuple[str, str] | None:
    key, equals, value = comment.removeprefix("#").partition("=")
    return (key.strip(), value.strip()) if equals and key.strip() else None


def _is_word(row: Row, number_column: int, path: Path) -> bool:
    number = row.columns[number_column]
    if not _NUMBER.fullmatch(number):
        message = f"{number!r} is not a word number such as 1, 1-2 or 1.1"
        raise DataError(message, path=path, line=row.line)
    return number.isdecimal()


def _check_number(row: Row, expected: int, number: str, path: Path) -> None:
    if int(number) != expected:
        message = f"found the word {number}, expected {expected} (a blank line ends a sentence)"
        raise DataError(message, path=path, line=row.line)
