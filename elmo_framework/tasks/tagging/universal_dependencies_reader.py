"""Parts of speech from the files of Universal Dependencies."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, final

from annotated_types import Gt

from elmo_framework.common.errors import DataError
from elmo_framework.data.columns import Row, read_blocks
from elmo_framework.data.reader import DatasetReader, FileReader
from elmo_framework.tasks.tagging.example import TaggedSentence

_NUM_COLUMNS = 10
_ID, _FORM, _UPOS, _XPOS = 0, 1, 3, 4
_NUMBER = re.compile("[0-9]+([-.][0-9]+)?")


@final
@DatasetReader.register("universal_dependencies_pos")
class UniversalDependenciesPosReader(FileReader[TaggedSentence]):
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
        super().__init__(max_instances)
        self._column = _XPOS if use_language_specific_pos else _UPOS

    def examples(self, file: Path) -> Iterator[TaggedSentence]:
        """Yield the sentences of a file."""
        for rows, _ in read_blocks(file, between="tabs", comment="#", width=_NUM_COLUMNS):
            held = [cells for row in rows if (cells := _cells(row, file))[_ID].isdecimal()]
            if held:
                words, tags = zip(
                    *((cells[_FORM], cells[self._column]) for cells in held), strict=True
                )
                yield TaggedSentence(words, tags)


def _cells(row: Row, file: Path) -> tuple[str, ...]:
    if not _NUMBER.fullmatch(row.columns[_ID]):
        found = f"{row.columns[_ID]!r} is no number of a word"
        raise DataError(f"{found}; expected one such as 1, 1-2 or 1.1", path=file, line=row.line)
    return row.columns
