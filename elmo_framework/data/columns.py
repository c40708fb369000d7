"""Files with a word a line, its labels in columns beside it, and a blank line after a sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from elmo_framework.common.errors import DataError
from elmo_framework.data.paths import read_lines

_DOCUMENT = "-DOCSTART-"
_CELL = re.compile("[^ \t]+")


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


class Block(NamedTuple):
    """The rows of a sentence, and the comments between them and the sentence before."""

    rows: list[Row]
    comments: list[Comment]


def split_cells(text: str) -> tuple[str, ...]:
    """Return what stands between spaces and tabs; a cell may hold others, as no-break spaces."""
    return tuple(_CELL.findall(text))


def check_width(row: Row, first: Row, path: Path) -> None:
    """Refuse a row that is not as wide as the first.

    Raises:
        DataError: it has more columns, or fewer.
    """
    if len(row.columns) != len(first.columns):
        expected = f"expected {len(first.columns)} as on line {first.line}"
        found = f"found {len(row.columns)} columns, {expected}: {' '.join(row.columns)!r}"
        raise DataError(found, path=path, line=row.line)


def read_blocks(
    path: Path, *, separator: str | None = None, comment: str | None = None
) -> Iterator[Block]:
    """Yield the sentences of a file; a blank line ends one, and so does a comment.

    Args:
        path: of the file.
        separator: what stands between columns; None for runs of spaces and tabs.
        comment: how comments begin; None where there are none.

    Raises:
        DataError: the file cannot be read, a row is not as wide as the first of its sentence, or
            there is no sentence at all.
    """
    is_empty, block = True, Block([], [])
    for number, line in chain(read_lines(path), [(0, "")]):
        text = line.strip(" \t")
        is_comment = comment is not None and text.startswith(comment)
        if text and not is_comment:
            cells = tuple(line.split(separator)) if separator else split_cells(line)
            block.rows.append(Row(number, cells))
            check_width(block.rows[-1], block.rows[0], path)
            continue
        if block.rows:
            yield block
            is_empty, block = False, Block([], [])
        if is_comment:
            block.comments.append(Comment(number, text))
    if is_empty:
        raise DataError("there is no sentence in this file", path=path)


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
