"""Read parts of speech from the files of Universal Dependencies."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import ClassVar, final

from elmo_framework.config.types import Count
from elmo_framework.data.formats.columns import conllu_metadata, read_conllu
from elmo_framework.data.formats.file_format import FileFormat
from elmo_framework.data.inputs import PredictionInput, other_fields
from elmo_framework.data.reader import DatasetReader, FileReader
from elmo_framework.tasks.tagging.example import TaggedSentence

_COLUMNS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
_FORM, _UPOS, _XPOS = 1, 3, 4


@final
@DatasetReader.register("universal_dependencies_pos")
class UniversalDependenciesPosReader(FileReader[TaggedSentence]):
    """Reads CoNLL-U: one word per line in ten tab-separated columns, comments after `#`.

    Multiword tokens (`1-2`) and empty nodes (`1.1`) are skipped.

    Args:
        use_language_specific_pos: use the tags of the treebank (XPOS) instead of the
            universal ones (UPOS).
    """

    example_type = TaggedSentence
    formats: ClassVar[Collection[FileFormat]] = (FileFormat.CONLLU,)

    def __init__(
        self,
        use_language_specific_pos: bool = False,
        max_instances: Count | None = None,
    ) -> None:
        super().__init__(max_instances)
        self._column = _XPOS if use_language_specific_pos else _UPOS

    def examples(self, file: Path) -> Iterator[TaggedSentence]:
        for rows, _ in read_conllu(file, width=len(_COLUMNS)):
            words = tuple(row.columns[_FORM] for row in rows)
            tags = tuple(row.columns[self._column] for row in rows)
            yield TaggedSentence(words, tags)

    def inputs(self, file: Path) -> Iterator[PredictionInput[TaggedSentence]]:
        """Yield the sentences of a file, with their comments and their other columns."""
        for block in read_conllu(file, width=len(_COLUMNS)):
            columns = zip(*(row.columns for row in block.rows), strict=True)
            cells = dict(zip(_COLUMNS, map(list, columns), strict=True))
            fields = {**conllu_metadata(block), **other_fields(cells, ("id", "form"))}
            yield PredictionInput(TaggedSentence(tuple(cells["form"]), None), fields)
