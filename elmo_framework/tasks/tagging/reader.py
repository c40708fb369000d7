"""The column files of the CoNLL-2003 shared task."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated, Literal, final

from annotated_types import Gt

from elmo_framework.common.errors import DataError
from elmo_framework.data.columns import Row, read_sentences
from elmo_framework.data.paths import data_files
from elmo_framework.data.reader import DatasetReader
from elmo_framework.data.tagging import Scheme
from elmo_framework.tasks.tagging.example import TaggedSentence
from elmo_framework.tasks.tagging.span_tags import span_tags

_MAX_COLUMNS = 4
_COLUMNS = {"pos": (1, 2), "chunk": (2, 3), "ner": (-1, 2)}
"""Where a label stands, and how many columns a file must have for that."""


@final
@DatasetReader.register("conll2003")
class Conll2003Reader(DatasetReader[TaggedSentence]):
    """Reads a word a line, its labels in columns beside it, a blank line after each sentence.

    The columns are word, part of speech, chunk and named entity. A file may have the first two
    or three only; the named entity is always the last, so that a file of words and named
    entities can be read as well.

    Args:
        tag_label: which column holds the tags to be learned.
        coding_scheme: what spans are written in, whichever scheme the file has (`IOB1`, `BIO`
            or `BIOUL`); null for as they are. For `ner` and `chunk` only.
        max_instances: how many sentences are read; null for all.
    """

    example_type = TaggedSentence

    def __init__(
        self,
        tag_label: Literal["ner", "pos", "chunk"] = "ner",
        coding_scheme: Scheme | None = None,
        max_instances: Annotated[int, Gt(0)] | None = None,
    ) -> None:
        if tag_label == "pos" and coding_scheme is not None:
            raise ValueError(
                f"coding_scheme is {coding_scheme!r}, but parts of speech are no spans; remove it"
            )
        self.tag_label = tag_label
        self.coding_scheme = coding_scheme
        self.max_instances = max_instances

    def read(self, path: Path) -> Iterator[TaggedSentence]:
        """Yield the sentences of a file, or of the files of a folder or a pattern."""
        return islice(self._sentences(path), self.max_instances)

    def _sentences(self, path: Path) -> Iterator[TaggedSentence]:
        for file in data_files(path):
            for rows in read_sentences(file):
                words = tuple(row.columns[0] for row in rows)
                yield TaggedSentence(words, self._tags(rows, file))

    def _tags(self, rows: list[Row], file: Path) -> tuple[str, ...]:
        column = self._column(rows[0], file)
        tags = tuple(row.columns[column] for row in rows)
        if self.tag_label == "pos":
            return tags
        lines = [row.line for row in rows]
        return span_tags(tags, scheme=self.coding_scheme, path=file, lines=lines)

    def _column(self, row: Row, file: Path) -> int:
        column, needed = _COLUMNS[self.tag_label]
        if not needed <= len(row.columns) <= _MAX_COLUMNS:
            found = f"found {len(row.columns)} columns"
            expected = f"expected {needed} to {_MAX_COLUMNS} for tag_label {self.tag_label!r}"
            raise DataError(f"{found}, {expected}", path=file, line=row.line)
        return column
