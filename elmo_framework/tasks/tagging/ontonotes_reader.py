"""Read the named entities of OntoNotes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import final

from elmo_framework.config.types import Count
from elmo_framework.data.formats.columns import placed_cells
from elmo_framework.data.formats.conll2012 import read_conll2012, tags_of_brackets, unescaped
from elmo_framework.data.formats.file_format import FileFormat
from elmo_framework.data.inputs import PredictionInput
from elmo_framework.data.reader import DatasetReader, FileReader
from elmo_framework.data.tagging import Scheme, tags_in_scheme
from elmo_framework.tasks.tagging.task import TaggedSentence

_WITHOUT_ENTITIES = "pt/"
"""The names of documents of the Old and the New Testament, whose entities are not annotated."""


@final
@DatasetReader.register("ontonotes_ner")
class OntonotesNerReader(FileReader[TaggedSentence]):
    """Reads the named entities of CoNLL-2012, the format of OntoNotes.

    The files of OntoNotes are in many folders: `train_data_path: "train/**/*gold_conll"`. Documents
    whose names begin with `pt/` are skipped: their entities are not annotated. `/.` and `/?` are
    read as `.` and `?`.

    Args:
        coding_scheme: the scheme of the tags: `BIO` (also `IOB1`, `BIOUL` or `BIOES`).
    """

    example_type = TaggedSentence
    formats = (FileFormat.CONLL2012,)
    all_left_out = "the names of all documents begin with 'pt/': their entities are not annotated"

    def __init__(self, coding_scheme: Scheme = "BIO", max_instances: Count | None = None) -> None:
        super().__init__(max_instances)
        self.coding_scheme: Scheme = coding_scheme

    def examples(self, file: Path) -> Iterator[TaggedSentence]:
        for sentence in read_conll2012(file):
            if sentence.document_id.startswith(_WITHOUT_ENTITIES):
                continue
            last_line = sentence.first_line + len(sentence.words)
            with placed_cells(file, range(sentence.first_line, last_line)):
                tags = tags_of_brackets(sentence.entities, "entity")
                scheme_tags = tags_in_scheme(tags, self.coding_scheme, are_spans=True)
            yield TaggedSentence(unescaped(sentence.words), scheme_tags)

    def inputs(self, file: Path) -> Iterator[PredictionInput[TaggedSentence]]:
        """Yield the sentences of a file, each with its document and its part."""
        for sentence in read_conll2012(file):
            fields = {"document_id": sentence.document_id, "part": sentence.part}
            yield PredictionInput(TaggedSentence(unescaped(sentence.words), None), fields)
