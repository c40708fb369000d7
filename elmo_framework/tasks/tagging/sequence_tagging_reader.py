"""A tagged sentence a line, each word joined to its tag."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, final

from annotated_types import Gt, MinLen

from elmo_framework.common.errors import DataError
from elmo_framework.data.columns import split_cells
from elmo_framework.data.paths import parsed_lines
from elmo_framework.data.reader import DatasetReader, FileReader
from elmo_framework.data.tagging import Scheme
from elmo_framework.tasks.tagging.example import TaggedSentence
from elmo_framework.tasks.tagging.span_tags import tags_in_scheme


@final
@DatasetReader.register("sequence_tagging")
class SequenceTaggingReader(FileReader[TaggedSentence]):
    """Reads a sentence a line, such as `The###DT rain###NN stopped###VBD`; blank lines are skipped.

    Args:
        word_tag_delimiter: what stands between a word and its tag; the last one in a pair counts.
        token_delimiter: what stands between pairs; spaces and tabs when it is null.
        coding_scheme: what spans are written in, whichever scheme the file has (`IOB1`, `BIO`,
            `BIOUL` or `BIOES`); null for tags as they are.
    """

    example_type = TaggedSentence

    def __init__(
        self,
        word_tag_delimiter: Annotated[str, MinLen(1)] = "###",
        token_delimiter: Annotated[str, MinLen(1)] | None = None,
        coding_scheme: Scheme | None = None,
        max_instances: Annotated[int, Gt(0)] | None = None,
    ) -> None:
        super().__init__(max_instances)
        self._word_tag_delimiter, self._token_delimiter = word_tag_delimiter, token_delimiter
        self._coding_scheme = coding_scheme

    def examples(self, file: Path) -> Iterator[TaggedSentence]:
        """Yield the sentences of a file."""
        return parsed_lines(file, self._sentence)

    def _sentence(self, line: str) -> TaggedSentence:
        delimiter = self._token_delimiter
        pairs = split_cells(line) if delimiter is None else line.split(delimiter)
        words, tags = zip(*map(self._parts, pairs), strict=True)
        return TaggedSentence(words, tags_in_scheme(tags, self._coding_scheme))

    def _parts(self, pair: str) -> tuple[str, str]:
        word, delimiter, tag = pair.rpartition(self._word_tag_delimiter)
        if not (word and delimiter and tag):
            expected = f"expected a word, {self._word_tag_delimiter!r} and a tag"
            raise DataError(f"found {pair!r}, {expected}")
        return word, tag
