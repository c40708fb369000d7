"""A tagged sentence a line, each word joined to its tag."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated, final

from annotated_types import Gt, MinLen

from elmo_framework.common.errors import DataError
from elmo_framework.data.paths import data_files, read_lines
from elmo_framework.data.reader import DatasetReader
from elmo_framework.data.tagging import Scheme
from elmo_framework.tasks.tagging.example import TaggedSentence
from elmo_framework.tasks.tagging.span_tags import span_tags

_GAP = re.compile("[ \t]+")


@final
@DatasetReader.register("sequence_tagging")
class SequenceTaggingReader(DatasetReader[TaggedSentence]):
    """Reads a sentence a line, such as `The###DT rain###NN stopped###VBD`; blank lines are skipped.

    Args:
        word_tag_delimiter: what stands between a word and its tag; the last one in a pair counts.
        token_delimiter: what stands between pairs; spaces and tabs when it is null.
        coding_scheme: what spans are written in, whichever scheme the file has (`IOB1`, `BIO`
            or `BIOUL`); null for tags as they are.
        max_instances: how many sentences are read; null for all.
    """

    example_type = TaggedSentence

    def __init__(
        self,
        word_tag_delimiter: Annotated[str, MinLen(1)] = "###",
        token_delimiter: Annotated[str, MinLen(1)] | None = None,
        coding_scheme: Scheme | None = None,
        max_instances: Annotated[int, Gt(0)] | None = None,
    ) -> None:
        self._word_tag_delimiter, self._token_delimiter = word_tag_delimiter, token_delimiter
        self._coding_scheme, self._max_instances = coding_scheme, max_instances

    def read(self, path: Path) -> Iterator[TaggedSentence]:
        """Yield the sentences of a file, or of the files of a folder or a pattern."""
        sentences = (
            self._sentence(line, file, number)
            for file in data_files(path)
            for number, line in read_lines(file)
            if line.strip()
        )
        return islice(sentences, self._max_instances)

    def _sentence(self, line: str, file: Path, number: int) -> TaggedSentence:
        words, tags = [], []
        for pair in self._pairs(line):
            word, delimiter, tag = pair.rpartition(self._word_tag_delimiter)
            if not (word and delimiter and tag):
                expected = f"expected a word, {self._word_tag_delimiter!r} and a tag"
                raise DataError(f"found {pair!r}, {expected}", path=file, line=number)
            words.append(word)
            tags.append(tag)
        if self._coding_scheme is not None:
            lines = [number] * len(tags)
            tags = [*span_tags(tags, scheme=self._coding_scheme, path=file, lines=lines)]
        return TaggedSentence(tuple(words), tuple(tags))

    def _pairs(self, line: str) -> list[str]:
        if self._token_delimiter is not None:
            return line.split(self._token_delimiter)
        return _GAP.split(line.strip(" \t"))  # a word may hold other spaces, as 10\u00a0000 does
