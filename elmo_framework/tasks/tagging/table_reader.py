"""Read tagged sentences from tables: one word per line, with tabs or commas between columns."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import TypeAlias, final

from elmo_framework.config.types import Count
from elmo_framework.data.formats.columns import Row, columns_of, placed_cells
from elmo_framework.data.formats.file_format import FileFormat
from elmo_framework.data.formats.records import Separator, column_names, read_cells
from elmo_framework.data.formats.text_files import NO_SENTENCE, require_nonempty
from elmo_framework.data.inputs import PredictionInput
from elmo_framework.data.reader import DatasetReader, FileReader
from elmo_framework.data.tagging import Scheme, tags_in_scheme
from elmo_framework.errors import DataError, allowed
from elmo_framework.tasks.tagging.task import TaggedSentence

_log = logging.getLogger(__name__)

_MANY = 1_000

Column: TypeAlias = int | str
"""A column: its number from 0, from the end if it is negative, or its name."""


@final
@DatasetReader.register("tagging_table")
class TableTaggingReader(FileReader[TaggedSentence]):
    """Reads one word per line with its tag in another column; a blank line ends a sentence.

    A column is a number from 0, from the end if it is negative, or a name; if one of them is a
    name, the first line of each file contains the names.

    Args:
        word_column: the column of words.
        tag_column: the column of tags.
        sentence_column: the column of sentence numbers; a sentence also ends where it changes.
            An empty cell means the number above it. Null for no such column.
        separator: the separator of columns. With `comma` and `semicolon` a value may be quoted.
            Null for commas in a `.csv` file, or semicolons if its first line has no comma, and
            tabs in all others.
        coding_scheme: convert the tags from the scheme of the file to this one (`IOB1`, `BIO`,
            `BIOUL` or `BIOES`); null to keep them.
    """

    example_type = TaggedSentence
    formats = (FileFormat.TABLE, FileFormat.COLUMNS)

    def __init__(
        self,
        word_column: Column = 0,
        tag_column: Column = -1,
        sentence_column: Column | None = None,
        separator: Separator | None = None,
        coding_scheme: Scheme | None = None,
        max_instances: Count | None = None,
    ) -> None:
        super().__init__(max_instances)
        self._word, self._tag, self._mark = word_column, tag_column, sentence_column
        self._has_header = any(isinstance(at, str) for at in (self._word, self._tag, self._mark))
        self._separator, self._coding_scheme = separator, coding_scheme

    def examples(self, file: Path) -> Iterator[TaggedSentence]:
        return require_nonempty(self._sentences(file), NO_SENTENCE, file)

    def inputs(self, file: Path) -> Iterator[PredictionInput[TaggedSentence]]:
        """Yield the sentences of a file, which needs no column of tags, with their other columns.

        A column without a name is called `column_2`, by its number from 0.
        """
        inputs = self._inputs(file)
        return require_nonempty(inputs, NO_SENTENCE, file)

    def _sentences(self, file: Path) -> Iterator[TaggedSentence]:
        table = self._table(file)
        if table is None:
            return
        word, tag = table.place(self._word), table.place(self._tag)
        if word == tag:
            problem = f"the word and the tag are both in column {tag} of {len(table.columns)}"
            hint = "is the separator right (conll2003 reads spaces)?"
            raise DataError(f"{problem}; {hint}", path=file, line=table.first.line)
        for rows in self._blocks(table):
            yield self._sentence(rows, file, word, tag)

    def _inputs(self, file: Path) -> Iterator[PredictionInput[TaggedSentence]]:
        table = self._table(file)
        if table is None:
            return
        word, names = table.place(self._word), [f"column_{n}" for n in range(len(table.columns))]
        if self._has_header:
            names = [name or names[n] for n, name in enumerate(table.columns)]
        for rows in self._blocks(table):
            for row in rows:
                if not row.columns[word].strip():
                    raise DataError("a word is missing", path=file, line=row.line)
            columns = columns_of(rows, names)
            words = tuple(map(str.strip, columns.pop(names[word])))
            yield PredictionInput(TaggedSentence(words, None), columns)

    def _table(self, file: Path) -> _Table | None:
        """Open a file; return None if it is empty."""
        rows = read_cells(file, self._separator)
        first = next((row for row in rows if row.columns), None)
        if first is None:
            return None
        body = rows if self._has_header else chain([first], rows)
        columns = column_names(first, file) if self._has_header else first.columns
        return _Table(file, first, columns, body)

    def _blocks(self, table: _Table) -> Iterator[list[Row]]:
        mark = None if self._mark is None else table.place(self._mark)
        for _, numbered in groupby(_numbered(table.body, mark), key=itemgetter(0)):
            rows = [row for _, row in numbered]
            if self._mark is None and len(rows) > _MANY:
                hint = "end sentences with blank lines, or set sentence_column"
                place = f"{table.file}:{rows[0].line}"
                _log.warning("%s: a sentence of %d words; %s", place, len(rows), hint)
            yield rows

    def _sentence(self, rows: Sequence[Row], file: Path, word: int, tag: int) -> TaggedSentence:
        for row in rows:
            if not (row.columns[word].strip() and row.columns[tag].strip()):
                raise DataError("a word or its tag is missing", path=file, line=row.line)
        words = tuple(row.columns[word].strip() for row in rows)
        tags = [row.columns[tag].strip() for row in rows]
        with placed_cells(file, [row.line for row in rows]):
            return TaggedSentence(words, tags_in_scheme(tags, self._coding_scheme))


@dataclass(frozen=True)
class _Table:
    """An open table.

    Attributes:
        file: its path.
        first: its first row that is not blank.
        columns: the names of the columns, or the cells of the first row if they have no names.
        body: the rows of words.
    """

    file: Path
    first: Row
    columns: Sequence[str]
    body: Iterable[Row]

    def place(self, column: Column) -> int:
        """Return the number of a column, from 0; raise a `DataError` if it does not exist."""
        width = len(self.columns)
        if isinstance(column, str):
            if column in self.columns:
                return self.columns.index(column)
            problem = f"unknown column {column!r}; {allowed(column, self.columns)}"
        else:
            if -width <= column < width:
                return column % width
            problem = f"unknown column {column}; allowed: {-width} to {width - 1}"
        raise DataError(problem, path=self.file, line=self.first.line)


def _numbered(rows: Iterable[Row], column: int | None) -> Iterator[tuple[int, Row]]:
    """Yield the rows of words with the number of their sentence, which need not be consecutive."""
    number, mark = 0, ""
    for row in rows:
        if not row.columns:
            number, mark = number + 1, ""
            continue
        new_mark = "" if column is None else row.columns[column].strip()
        if new_mark not in ("", mark):
            number, mark = number + 1, new_mark
        yield number, row
