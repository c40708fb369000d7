"""The column files of the CoNLL-2000 shared task."""

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

_NUM_COLUMNS = 3


@final
@DatasetReader.register("conll2000")
class Conll2000Reader(DatasetReader[TaggedSentence]):
    """Reads a word a line, its part of speech and its chunk; a blank line after each sentence.

    Args:
        tag_label: which column holds the tags to be learned.
        coding_scheme: what chunks are written in, whichever scheme the file has (`IOB1`, `BIO`
            or `BIOUL`); null for as they are.
        max_instances: how many sentences are read; null for all.
    """

    example_type = TaggedSentence

    def __init__(
        self,
        tag_label: Literal["chunk", "pos"] = "chunk",
        coding_scheme: Scheme | None = None,
        max_instances: Annotated[int, Gt(0)] | None = None,
    ) -> None:
        if tag_label == "pos" and coding_scheme is not None:
            raise ValueError(
                f"coding_scheme is {coding_scheme!r}, but parts of speech are no spans; remove it"
            )
        self._tag_label, self._coding_scheme = tag_label, coding_scheme
        self._max_instances = max_instances

    def read(self, path: Path) -> Iterator[TaggedSentence]:
        """Yield the sentences of a file, or of the files of a folder or a pattern."""
        sentences = (
            self._sentence(rows, file) for file in data_files(path) for rows in read_sentences(file)
        )
        return islice(sentences, self._max_instances)

    def _sentence(self, rows: list[Row], file: Path) -> TaggedSentence:
        found = len(rows[0].columns)
        if found != _NUM_COLUMNS:
            expected = f"expected {_NUM_COLUMNS}: word, part of speech, chunk"
            raise DataError(f"found {found} columns, {expected}", path=file, line=rows[0].line)
        words, parts_of_speech, chunks = zip(*(row.columns for row in rows), strict=True)
        if self._tag_label == "pos":
            return TaggedSentence(words, parts_of_speech)
        lines = [row.line for row in rows]
        tags = span_tags(chunks, scheme=self._coding_scheme, path=file, lines=lines)
        return TaggedSentence(words, tags)
