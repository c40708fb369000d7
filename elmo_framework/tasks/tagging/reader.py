"""Read tagged columns: the CoNLL-2000 and CoNLL-2003 shared tasks, Universal Dependencies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar, Literal, final

from elmo_framework.config.types import Count
from elmo_framework.console import plural
from elmo_framework.data.formats.columns import (
    Row,
    columns_of,
    conllu_metadata,
    placed_cells,
    read_conllu,
    read_sentences,
)
from elmo_framework.data.formats.file_format import FileFormat
from elmo_framework.data.inputs import PredictionInput, other_fields
from elmo_framework.data.reader import DatasetReader, FileReader
from elmo_framework.data.tagging import Scheme, tags_in_scheme
from elmo_framework.errors import DataError
from elmo_framework.tasks.tagging.conllu import COLUMNS, divided_rows
from elmo_framework.tasks.tagging.task import TaggedSentence

_WORDS = "words"


class ConllReader(FileReader[TaggedSentence]):
    """Reads one word per line, with its labels in further columns; a blank line ends a sentence.

    Attributes:
        columns: the column of each label, and how many columns a file must have for it; in the
            order of a file that has all of them.
        max_columns: maximum number of columns of a file.

    Args:
        tag_label: the column of the tags to learn.
        coding_scheme: convert the tags from the scheme of the file to this one (`IOB1`, `BIO`,
            `BIOUL` or `BIOES`); null to keep them. Not for `pos`, whose tags do not mark spans.
    """

    example_type = TaggedSentence
    formats = (FileFormat.COLUMNS,)
    columns: ClassVar[Mapping[str, tuple[int, int]]]
    max_columns: ClassVar[int]

    def __init__(
        self,
        tag_label: str,
        coding_scheme: Scheme | None,
        max_instances: Count | None,
    ) -> None:
        if tag_label == "pos" and coding_scheme is not None:
            raise ValueError(
                f"coding_scheme is {coding_scheme!r}, but parts of speech are not spans; remove it"
            )
        super().__init__(max_instances)
        self.tag_label, self.coding_scheme = tag_label, coding_scheme

    def examples(self, file: Path) -> Iterator[TaggedSentence]:
        for rows in read_sentences(file):
            yield TaggedSentence(tuple(row.columns[0] for row in rows), self._tags(rows, file))

    def inputs(self, file: Path) -> Iterator[PredictionInput[TaggedSentence]]:
        """Yield the sentences of a file, in which only the column of words is required."""
        for rows in read_sentences(file):
            width = len(rows[0].columns)
            if width > self.max_columns:
                raise self._unexpected(rows[0], f"1 to {self.max_columns} to predict for", file)
            fields = columns_of(rows, [_WORDS, *self._label_names(width)])
            words = tuple(fields.pop(_WORDS))
            yield PredictionInput(TaggedSentence(words, None), fields)

    def _label_names(self, width: int) -> list[str]:
        names = list(self.columns)[: width - 1]
        if names and self.columns[self.tag_label][0] < 0:
            names[-1] = self.tag_label
        return names

    def _tags(self, rows: list[Row], file: Path) -> tuple[str, ...]:
        column = self._column(rows[0], file)
        tags = tuple(row.columns[column] for row in rows)
        if self.tag_label == "pos":
            return tags
        with placed_cells(file, [row.line for row in rows]):
            return tags_in_scheme(tags, self.coding_scheme, are_spans=True)

    def _column(self, row: Row, file: Path) -> int:
        column, needed = self.columns[self.tag_label]
        if not needed <= len(row.columns) <= self.max_columns:
            widths = (
                str(needed) if needed == self.max_columns else f"{needed} to {self.max_columns}"
            )
            raise self._unexpected(row, f"{widths} for tag_label {self.tag_label!r}", file)
        return column

    @staticmethod
    def _unexpected(row: Row, expected: str, file: Path) -> DataError:
        message = f"found {plural(len(row.columns), 'column')}, expected {expected}"
        return DataError(message, path=file, line=row.line)


@final
@DatasetReader.register("conll2003")
class Conll2003Reader(ConllReader):
    """Reads one word per line, with its labels in further columns; a blank line ends a sentence.

    The columns are word, part of speech, chunk and named entity. A file may have only the first
    two or three; the named entity is always the last, so that a file of words and named entities
    can be read as well.
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
        max_instances: Count | None = None,
    ) -> None:
        super().__init__(tag_label, coding_scheme, max_instances)


@final
@DatasetReader.register("conll2000")
class Conll2000Reader(ConllReader):
    """Reads lines of word, part of speech and chunk; a blank line ends a sentence."""

    columns: ClassVar[Mapping[str, tuple[int, int]]] = {"pos": (1, 3), "chunk": (2, 3)}
    max_columns = 3

    def __init__(
        self,
        tag_label: Literal["chunk", "pos"] = "chunk",
        coding_scheme: Scheme | None = None,
        max_instances: Count | None = None,
    ) -> None:
        super().__init__(tag_label, coding_scheme, max_instances)


@final
@DatasetReader.register("universal_dependencies_pos")
class UniversalDependenciesPosReader(FileReader[TaggedSentence]):
    """Reads CoNLL-U: one word per line in ten tab-separated columns, comments after `#`.

    Multiword tokens (`1-2`) and empty nodes (`1.1`) are skipped; `elmo predict` writes them back.

    Args:
        use_language_specific_pos: use the tags of the treebank (XPOS) instead of the
            universal ones (UPOS).
    """

    example_type = TaggedSentence
    formats = (FileFormat.CONLLU,)

    def __init__(
        self,
        use_language_specific_pos: bool = False,
        max_instances: Count | None = None,
    ) -> None:
        super().__init__(max_instances)
        self._column = "xpos" if use_language_specific_pos else "upos"

    def examples(self, file: Path) -> Iterator[TaggedSentence]:
        for rows, _ in read_conllu(file, width=len(COLUMNS)):
            columns = columns_of(rows, COLUMNS)
            yield TaggedSentence(tuple(columns["form"]), tuple(columns[self._column]))

    def inputs(self, file: Path) -> Iterator[PredictionInput[TaggedSentence]]:
        """Yield the sentences of a file, with their comments and their other columns."""
        for block in read_conllu(file, width=len(COLUMNS), words_only=False):
            rows, skipped = divided_rows(block.rows)
            columns = columns_of(rows, COLUMNS)
            fields = {**conllu_metadata(block), **other_fields(columns, ("id", "form"))}
            comments = tuple(text for _, text in block.comments)
            example = TaggedSentence(tuple(columns["form"]), None, comments, skipped)
            yield PredictionInput(example, fields)
