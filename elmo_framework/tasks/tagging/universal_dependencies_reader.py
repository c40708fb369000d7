"""Parts of speech from the files of Universal Dependencies."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, final

from annotated_types import Gt

from elmo_framework.common.errors import DataError
from elmo_framework.data.paths import data_files, read_lines
from elmo_framework.data.reader import DatasetReader
from elmo_framework.tasks.tagging.example import TaggedSentence

_NUM_COLUMNS = 10
_ID, _FORM, _UPOS, _XPOS = 0, 1, 3, 4
_NUMBER = re.compile("[0-9]+([-.][0-9]+)?")


@final
@DatasetReader.register("universal_dependencies_pos")
class UniversalDependenciesPosReader(DatasetReader[TaggedSentence]):
    """Reads CoNLL-U: a word a line, ten columns with tabs between them, comments after `#`.

    What is written as one word and counts as several (`1-2`), and words that are not written
    (`1.1`), are passed over.

    Args:
        use_language_specific_pos: whether the tags are those of the treebank (XPOS) in place of
            the universal ones (UPOS).
        max_instances: how many sentences are read; null for all.
    """

    example_type = TaggedSentence

    def __init__(
        self,
        use_language_specific_pos: bool = False,
        max_instances: Annotated[int, Gt(0)] | None = None,
    ) -> None:
        self._column = _XPOS if use_language_specific_pos else _UPOS
        self._max_instances = max_instances

    def read(self, path: Path) -> Iterator[TaggedSentence]:
        """Yield the sentences of a file, or of the files of a folder or a pattern."""
        sentences = (sentence for file in data_files(path) for sentence in self._sentences(file))
        return islice(sentences, self._max_instances)

    def _sentences(self, file: Path) -> Iterator[TaggedSentence]:
        is_empty = True
        words: list[str] = []
        tags: list[str] = []
        for number, line in chain(read_lines(file), [(0, "")]):
            if line.startswith("#"):
                continue
            if line.strip():
                columns = _columns(line, file, number)
                if columns[_ID].isdecimal():
                    words.append(columns[_FORM])
                    tags.append(columns[self._column])
            elif words:
                yield TaggedSentence(tuple(words), tuple(tags))
                is_empty, words, tags = False, [], []
        if is_empty:
            raise DataError("there is no sentence in this file", path=file)


def _columns(line: str, file: Path, number: int) -> list[str]:
    columns = line.split("\t")
    if len(columns) != _NUM_COLUMNS:
        found = f"found {len(columns)} columns, expected {_NUM_COLUMNS} with tabs between them"
        raise DataError(f"{found}: {line!r}", path=file, line=number)
    if not _NUMBER.fullmatch(columns[_ID]):
        found = f"{columns[_ID]!r} is no number of a word"
        raise DataError(f"{found}; expected one such as 1, 1-2 or 1.1", path=file, line=number)
    return columns
