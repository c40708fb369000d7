"""Files with a word a line, its labels in columns beside it, and a blank line after a sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from elmo_framework.console import plural
from elmo_framework.data.formats.text_files import read_lines
from elmo_framework.errors import DataError

Between: TypeAlias = Literal["tabs", "blanks", "tabs or blanks"]
"""What stands between cells: one tab, so that a cell may be empty or hold spaces; runs of spaces
and tabs; or a tab in a line that holds one, and runs of spaces in another."""

_DOCUMENT = "-DOCSTART-"
_CELL = re.compile("[^ \t]+")
_NUMBER = re.compile("[0-9]+([-.][0-9]+)?")


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a file with columns.

    Attributes:
        line: where it stands in the file, from 1; its last line if it takes several.
        columns: its cells.
    """

    line: int
    columns: tuple[str, ...]


class Comment(NamedTuple):
    """A line that holds no word, and its number."""

    line: int
    text: str


class ColumnBlock(NamedTuple):
    """The rows of a sentence, and the comments between them and the sentence before."""

    rows: list[Row]
    comments: list[Comment]


class CellError(ValueError):
    """A column that cannot be read; `position` says which of its cells, from 0."""

    def __init__(self, position: int, message: str) -> None:
        super().__init__(message)
        self.position = position


@contextmanager
def placed_cells(path: Path, first_line: int) -> Iterator[None]:
    """Say where in a file a cell stands that cannot be read.

    Args:
        path: of the file.
        first_line: where the column begins; a cell stands on each line.

    Raises:
        DataError: for a `CellError` inside.
    """
    try:
        yield
    except CellError as error:
        raise DataError(str(error), path=path, line=first_line + error.position) from error


def split_cells(text: str, between: Between = "blanks") -> tuple[str, ...]:
    """Return the cells of a line; blanks are spaces and tabs, and no others, as no-break spaces."""
    if between == "tabs" or (between == "tabs or blanks" and "\t" in text):
        return tuple(text.split("\t"))
    return tuple(_CELL.findall(text))


def one_cell(text: str) -> str:
    """Return a word or a label without spaces, which would begin another cell."""
    return "_".join(text.split()) or "_"


def check_width(row: Row, first: Row, path: Path) -> None:
    """Refuse a row that is not as wide as the first.

    Raises:
        DataError: it has more columns, or fewer.
    """
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
        between: what stands between columns.
        comment: how comments begin; None where there are none.
        width: how many columns a row has; None for as many as the first of its sentence.
        min_width: how many it has at least.

    Raises:
        DataError: the file cannot be read, a row is not as wide as that, or there is no sentence
            at all.
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
            block.comments.append(Comment(number, text))
    if is_empty:
        raise DataError("there is no sentence in this file", path=path)


def _unexpected(row: Row, expected: str, path: Path) -> DataError:
    found = f"found {plural(len(row.columns), 'column')}"
    message = f"{found}, expected {expected}: {' '.join(row.columns)!r}"
    return DataError(message, path=path, line=row.line)


def read_sentences(path: Path) -> Iterator[list[Row]]:
    """Yield the sentences of a file whose rows are all as wide as the first.

    Lines that start a document belong to no sentence.

    Raises:
        DataError: see `read_blocks`.
    """
    first: Row | None = None
    for rows, _ in read_blocks(path, comment=_DOCUMENT):
        first = first or rows[0]
        check_width(rows[0], first, path)
        yield rows


def read_conllu(path: Path, *, width: int, number_column: int = 0) -> Iterator[ColumnBlock]:
    """Yield the words of each sentence of CoNLL-U, or of CoNLL-U Plus, and the comments before it.

    What is written as one word and counts as several (`1-2`) is passed over, and so are words that
    are not written (`1.1`) and sentences without others.

    Args:
        path: of the file.
        width: how many columns a row has.
        number_column: which of them holds the number of the word.

    Raises:
        DataError: see `read_blocks`, or a row has no such number, or words are not numbered 1, 2,
            3 and so on.
    """
    for rows, comments in read_blocks(path, between="tabs", comment="#", width=width):
        if words := [row for row in rows if _is_word(row, number_column, path)]:
            for expected, row in enumerate(words, start=1):
                _check_number(row, expected, row.columns[number_column], path)
            yield ColumnBlock(words, comments)


def conllu_metadata(block: ColumnBlock) -> dict[str, str]:
    """Return what the comments of a sentence say of it: `# sent_id = 3` is `{"sent_id": "3"}`."""
    parts = (comment.text.removeprefix("#").partition("=") for comment in block.comments)
    return {key.strip(): value.strip() for key, equals, value in parts if equals and key.strip()}


def _is_word(row: Row, number_column: int, path: Path) -> bool:
    number = row.columns[number_column]
    if not _NUMBER.fullmatch(number):
        found = f"{number!r} is no number of a word"
        raise DataError(f"{found}; expected one such as 1, 1-2 or 1.1", path=path, line=row.line)
    return number.isdecimal()


def _check_number(row: Row, expected: int, found: str, path: Path) -> None:
    if int(found) != expected:
        message = f"found the word {found}, expected {expected} (a blank line ends a sentence)"
        raise DataError(message, path=path, line=row.line)
