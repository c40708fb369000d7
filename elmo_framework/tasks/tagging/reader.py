"""The column files of the CoNLL-2000 and CoNLL-2003 shared tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Literal, final

from annotated_types import Gt

from elmo_framework.common.errors import DataError
from elmo_framework.data.columns import Row, read_sentences
from elmo_framework.data.reader import DatasetReader, FileReader
from elmo_framework.data.tagging import Scheme
from elmo_framework.tasks.tagging.example import TaggedSentence
from elmo_framework.tasks.tagging.span_tags import tags_of_lines


class ConllReader(FileReader[TaggedSentence]):
    """Reads a word a line, its labels in columns beside it, a blank line after each sentence.

    Attributes:
        columns: where each label stands, and how many columns a file must have for that.
        max_columns: how many it may have.

    Args:
        tag_label: which column holds the tags to be learned.
        coding_scheme: what spans are written in, whichever scheme the file has (`IOB1`, `BIO`,
            `BIOUL` or `BIOES`); null for as they are. Not for `pos`, whose tags are no spans.
    """

    example_type = TaggedSentence
    columns: ClassVar[Mapping[str, tuple[int, int]]]
    max_columns: ClassVar[int]

    def __init__(
        self,
        tag_label: str,
        coding_scheme: Scheme | None,
        max_instances: Annotated[int, Gt(0)] | None,
    ) -> None:
        if tag_label == "pos" and coding_scheme is not None:
            raise ValueError(
                f"coding_scheme is {coding_scheme!r}, but parts of speech are no spans; remove it"
            )
        super().__init__(max_instances)
        self.tag_label, self.coding_scheme = tag_label, coding_scheme

    def examples(self, file: Path) -> Iterator[TaggedSentence]:
        """Yield the sentences of a file."""
        for rows in read_sentences(file):
            yield TaggedSentence(tuple(row.columns[0] for row in rows), self._tags(rows, file))

    def _tags(self, rows: list[Row], file: Path) -> tuple[str, ...]:
        column = self._column(rows[0], file)
        tags = tuple(row.columns[column] for row in rows)
        if self.tag_label == "pos":
            return tags
        lines = [row.line for row in rows]
        return tags_of_lines(tags, self.coding_scheme, path=file, lines=lines, are_spans=True)

    def _column(self, row: Row, file: Path) -> int:
        column, needed = self.columns[self.tag_label]
        if not needed <= len(row.columns) <= self.max_columns:
            widths = (
                str(needed) if needed == self.max_columns else f"{needed} to {self.max_columns}"
            )
            expected = f"expected {widths} for tag_label {self.tag_label!r}"
            found = f"found {len(row.columns)} columns"
            raise DataError(f"{found}, {expected}", path=file, line=row.line)
        return column


@final
@DatasetReader.register("conll2003")
class Conll2003Reader(ConllReader):
    """Reads a word a line, its labels in columns beside it, a blank line after each sentence.

    The columns are word, part of speech, chunk and named entity. A file may have the first two
    or three only; the named entity is always the last, so that a file of words and named
    entities can be read as well.
    """

    columns: ClassVar[Mapping[str, tuple[int, int]]] = {
        "pos": (1, 2),
        "chunk": (2, 3),
        "ner": (-1, 2),
    }
    max_columns = 4

    def __init__(
        self,
        tag_label: Literal["ner", "pos", "chunk"] = "ner",
        coding_scheme: Scheme | None = None,
        max_instances: Annotated[int, Gt(0)] | None = None,
    ) -> None:
        super().__init__(tag_label, coding_scheme, max_instances)


@final
@DatasetReader.register("conll2000")
class Conll2000Reader(ConllReader):
    """Reads a word a line, its part of speech and its chunk; a blank line after each sentence."""

    columns: ClassVar[Mapping[str, tuple[int, int]]] = {"pos": (1, 3), "chunk": (2, 3)}
    max_columns = 3

    def __init__(
        self,
        tag_label: Literal["chunk", "pos"] = "chunk",
        coding_scheme: Scheme | None = None,
        max_instances: Annotated[int, Gt(0)] | None = None,
    ) -> None:
        super().__init__(tag_label, coding_scheme, max_instances)
