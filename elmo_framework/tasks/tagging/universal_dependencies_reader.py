"""Parts of speech from the files of Universal Dependencies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, final

from annotated_types import Gt

from elmo_framework.data.columns import read_conllu
from elmo_framework.data.reader import DatasetReader, FileReader
from elmo_framework.tasks.tagging.example import TaggedSentence

_NUM_COLUMNS = 10
_FORM, _UPOS, _XPOS = 1, 3, 4


@final
@DatasetReader.register("universal_dependencies_pos")
class UniversalDependenciesPosReader(FileReader[TaggedSentence]):
    """Reads CoNLL-U: a word a line, ten columns with tabs between them, comments after `#`.

    What is written as one word and counts as several (`1-2`), and words that are not written
    (`1.1`), are passed over.

    Args:
        use_language_specific_pos: whether the tags are those of the treebank (XPOS) in place of
            the universal ones (UPOS).
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
        for rows in read_conllu(file, width=_NUM_COLUMNS):
            words = tuple(row.columns[_FORM] for row in rows)
            tags = tuple(row.columns[self._column] for row in rows)
            yield TaggedSentence(words, tags)
