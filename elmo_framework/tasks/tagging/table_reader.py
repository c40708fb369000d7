"""Tagged sentences as tables: a word a line, with tabs or commas between columns."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import Annotated, TypeAlias, final

from annotated_types import Gt

from elmo_framework.common.errors import DataError, allowed
from elmo_framework.data.columns import Row
from elmo_framework.data.paths import at_least_one
from elmo_framework.data.reader import DatasetReader, FileReader
from elmo_framework.data.records import Separator, column_names, read_cells
from elmo_framework.data.tagging import Scheme
from elmo_framework.tasks.tagging.example import TaggedSentence
from elmo_framework.tasks.tagging.span_tags import tags_of_lines

_log = logging.getLogger(__name__)

_MANY = 1_000

Column: TypeAlias = int | str
"""Where a column stands: its number from 0, from the end if it is negative, or its name."""


@final
@DatasetReader.register("tagging_table")
class TableTaggingReader(FileReader[TaggedSentence]):
    """Reads a word a line with its tag in another column; a blank line ends a sentence.

    A column is a number from 0, from the end if it is negative, or a name; where one of them is a
    name, the first line of each file holds the names.

    Args:
        word_column: where the words stand.
        tag_column: where the tags stand.
        sentence_column: where the number of the sentence stands; a sentence ends where it
            changes, too. An empty cell means the number above it. There is none if it is null.
        separator: what stands between columns. Between `comma`s a value may be quoted. Null for
            commas in a file called `.csv`, and tabs in all others.
        coding_scheme: what spans are written in, whichever scheme the file has (`IOB1`, `BIO`,
            `BIOUL` or `BIOES`); null for tags as they are.
    """

    example_type = TaggedSentence

    def __init__(
        self,
        word_column: Column = 0,
        tag_column: Column = -1,
        sentence_column: Column | None = None,
        separator: Separator | None = None,
        coding_scheme: Scheme | None = None,
        max_instances: Annotated[int, Gt(0)] | None = None,
    ) -> None:
        super().__init__(max_instances)
        self._word, self._tag, self._mark = word_column, tag_column, sentence_column
        self._has_header = any(isinstance(at, str) for at in (self._word, self._tag, self._mark))
        self._separator, self._coding_scheme = separator, coding_scheme

    def examples(self, file: Path) -> Iterator[TaggedSentence]:
        """Yield the sentences of a file."""
        return at_least_one(self._sentences(file), "there is no sentence in this file", file)

    def _sentences(self, file: Path) -> Iterator[TaggedSentence]:
        rows = read_cells(file, self._separator)
        first = next((row for row in rows if row.columns), None)
        if first is None:
            return
        body = rows if self._has_header else chain([first], rows)
        columns = column_names(first, file) if self._has_header else first.columns
        sentence = None if self._mark is None else _place(self._mark, columns, first, file)
        word, tag = (_place(column, columns, first, file) for column in (self._word, self._tag))
        if word == tag:
            found = f"the word and the tag both stand in column {word} of {len(columns)}"
            hint = "is the separator right (conll2003 reads spaces)?"
            raise DataError(f"{found}; {hint}", path=file, line=first.line)
        for _, numbered in groupby(_numbered(body, sentence), key=itemgetter(0)):
            yield self._sentence([row for _, row in numbered], word, tag, file)

    def _sentence(self, rows: list[Row], word: int, tag: int, file: Path) -> TaggedSentence:
        for row in rows:
            if not (row.columns[word].strip() and row.columns[tag].strip()):
                raise DataError("a word or its tag is missing", path=file, line=row.line)
        if self._mark is None and len(rows) > _MANY:
            hint = "end sentences with blank lines, or set sentence_column"
            _log.warning("%s:%d: a sentence of %d words; %s", file, rows[0].line, len(rows), hint)
        words = tuple(row.columns[word] for row in rows)
        tags = [row.columns[tag].strip() for row in rows]
        lines = [row.line for row in rows]
        return TaggedSentence(
            words, tags_of_lines(tags, self._coding_scheme, path=file, lines=lines)
        )


def _numbered(rows: Iterable[Row], column: int | None) -> Iterator[tuple[int, Row]]:
    """Yield the rows of words with the number of their sentence, which need not be consecutive."""
    number, mark = 0, ""
    for row in rows:
        if not row.columns:
            number, mark = number + 1, ""
            continue
        found = "" if column is None else row.columns[column]
        if found not in ("", mark):
            number, mark = number + 1, found
        yield number, row


def _place(column: Column, columns: Sequence[str], first: Row, file: Path) -> int:
    """Return the number of a column, from 0.

    Raises:
        DataError: there is none like it.
    """
    width = len(columns)
    if isinstance(column, str):
        if column in columns:
            return columns.index(column)
        found = f"no column is called {column!r}; {allowed(column, columns)}"
    else:
        if -width <= column < width:
            return column % width
        found = f"there is no column {column}; allowed: {-width} to {width - 1}"
    raise DataError(found, path=file, line=first.line)
