"""Tagged sentences as tables: a word a line, with tabs or commas between columns."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from itertools import chain, groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, TypeAlias, final

from annotated_types import Gt

from elmo_framework.common.errors import DataError, allowed
from elmo_framework.data.paths import data_files, read_lines
from elmo_framework.data.reader import DatasetReader
from elmo_framework.data.tagging import Scheme
from elmo_framework.tasks.tagging.example import TaggedSentence
from elmo_framework.tasks.tagging.span_tags import span_tags

Column: TypeAlias = int | str
"""Where a column stands: its number from 0, from the end if it is negative, or its name."""


class _Row(NamedTuple):
    line: int
    cells: list[str]


@final
@DatasetReader.register("tagging_table")
class TableTaggingReader(DatasetReader[TaggedSentence]):
    """Reads a word a line with its tag in another column; a blank line ends a sentence.

    A column is a number from 0, from the end if it is negative, or a name; where one of them is a
    name, the first line of each file holds the names.

    Args:
        word_column: where the words stand.
        tag_column: where the tags stand.
        sentence_column: where the number of the sentence stands; a sentence ends where it
            changes, too. An empty cell means the number above it. There is none if it is null.
        separator: what stands between columns. Between `comma`s a value may be quoted.
        coding_scheme: what spans are written in, whichever scheme the file has (`IOB1`, `BIO`
            or `BIOUL`); null for tags as they are.
        max_instances: how many sentences are read; null for all.
    """

    example_type = TaggedSentence

    def __init__(
        self,
        word_column: Column = 0,
        tag_column: Column = -1,
        sentence_column: Column | None = None,
        separator: Literal["tab", "comma"] = "tab",
        coding_scheme: Scheme | None = None,
        max_instances: Annotated[int, Gt(0)] | None = None,
    ) -> None:
        self._word, self._tag, self._mark = word_column, tag_column, sentence_column
        self._has_header = any(isinstance(at, str) for at in (self._word, self._tag, self._mark))
        self._separator = separator
        self._coding_scheme, self._max_instances = coding_scheme, max_instances

    def read(self, path: Path) -> Iterator[TaggedSentence]:
        """Yield the sentences of a file, or of the files of a folder or a pattern."""
        sentences = (sentence for file in data_files(path) for sentence in self._sentences(file))
        return islice(sentences, self._max_instances)

    def _sentences(self, file: Path) -> Iterator[TaggedSentence]:
        rows = _rows(file, self._separator)
        first = next((row for row in rows if row.cells), None)
        if first is None:
            raise DataError("there is no sentence in this file", path=file)
        body = rows if self._has_header else chain([first], rows)
        sentence = None if self._mark is None else _place(self._mark, first, file)
        word, tag = _place(self._word, first, file), _place(self._tag, first, file)
        for _, numbered in groupby(_numbered(body, sentence), key=itemgetter(0)):
            yield self._sentence([row for _, row in numbered], word, tag, file)

    def _sentence(self, rows: list[_Row], word: int, tag: int, file: Path) -> TaggedSentence:
        for row in rows:
            if not (row.cells[word].strip() and row.cells[tag].strip()):
                raise DataError("a word or its tag is missing", path=file, line=row.line)
        words = tuple(row.cells[word] for row in rows)
        tags = tuple(row.cells[tag] for row in rows)
        if self._coding_scheme is not None:
            lines = [row.line for row in rows]
            tags = span_tags(tags, scheme=self._coding_scheme, path=file, lines=lines)
        return TaggedSentence(words, tags)


def _rows(file: Path, separator: str) -> Iterator[_Row]:
    """Yield the rows of a file, all as wide as the first; a blank line is one without cells."""
    lines = (line for _, line in read_lines(file))
    table = (
        csv.reader(lines, strict=True)
        if separator == "comma"
        else csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    )
    width = 0
    try:
        for cells in table:
            row = _Row(table.line_num, cells if any(map(str.strip, cells)) else [])
            width = width or len(row.cells)
            if len(row.cells) not in (0, width):
                found = f"found {len(cells)} columns, expected {width} as above"
                raise DataError(found, path=file, line=row.line)
            yield row
    except csv.Error as error:
        raise DataError(f"no row of a table: {error}", path=file, line=table.line_num) from error


def _numbered(rows: Iterable[_Row], column: int | None) -> Iterator[tuple[int, _Row]]:
    """Yield the rows of words with the number of their sentence, which need not be consecutive."""
    number, mark = 0, ""
    for row in rows:
        if not row.cells:
            number, mark = number + 1, ""
            continue
        found = "" if column is None else row.cells[column]
        if found not in ("", mark):
            number, mark = number + 1, found
        yield number, row


def _place(column: Column, first: _Row, file: Path) -> int:
    """Return the number of a column.

    Raises:
        DataError: there is none like it.
    """
    width = len(first.cells)
    if isinstance(column, str):
        if column in first.cells:
            return first.cells.index(column)
        found = f"no column is called {column!r}; {allowed(column, first.cells)}"
    else:
        if -width <= column < width:
            return column
        found = f"there is no column {column}; allowed: {-width} to {width - 1}"
    raise DataError(found, path=file, line=first.line)
