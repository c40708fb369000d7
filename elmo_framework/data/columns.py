"""Files with a word a line, its labels in columns beside it, and a blank line after a sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from elmo_framework.common.errors import DataError
from elmo_framework.data.paths import read_lines

_DOCUMENT = "-DOCSTART-"
_GAP = re.compile("[ \t]+")


@dataclass(frozen=True, slots=True)
class Row:
    """One word and its labels.

    Attributes:
        line: where it stands in the file, from 1.
        columns: what stands between runs of spaces and tabs; the first is the word.
    """

    line: int
    columns: tuple[str, ...]


def read_sentences(path: Path) -> Iterator[list[Row]]:
    """Yield the sentences of a column file; lines that start a document belong to none.

    Raises:
        DataError: the file cannot be read, a line has more or fewer columns than those before
            it, or there is no sentence at all.
    """
    is_empty, sentence = True, []
    for row in chain(_rows(path), [None]):
        if row is not None:
            sentence.append(row)
        elif sentence:
            yield sentence
            is_empty, sentence = False, []
    if is_empty:
        raise DataError("there is no sentence in this file", path=path)


def _rows(path: Path) -> Iterator[Row | None]:
    """Yield the rows, and None for a line between sentences."""
    first: Row | None = None
    for number, line in read_lines(path):
        text = line.strip(" \t")
        row = Row(number, tuple(_GAP.split(text)))
        if not text or row.columns[0] == _DOCUMENT:
            yield None
            continue
        first = first or row
        if len(row.columns) != len(first.columns):
            expected = f"expected {len(first.columns)} as on line {first.line}"
            found = f"found {len(row.columns)} columns, {expected}: {line!r}"
            raise DataError(found, path=path, line=number)
        yield row
