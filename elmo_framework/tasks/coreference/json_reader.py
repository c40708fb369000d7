"""Read documents with coreference from JSON lines."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, final

from elmo_framework.config.types import Count
from elmo_framework.data.formats.file_format import FileFormat
from elmo_framework.data.formats.records import Record, read_objects, string_of
from elmo_framework.data.formats.text_files import error_context
from elmo_framework.data.reader import DatasetReader
from elmo_framework.data.record_reader import RecordReader
from elmo_framework.errors import DataError
from elmo_framework.tasks.coreference.example import Document
from elmo_framework.tasks.coreference.genres import ONTONOTES
from elmo_framework.tasks.coreference.json_fields import clusters, word_lists
from elmo_framework.tasks.coreference.reader import CoreferenceReader


@final
@DatasetReader.register("coref_jsonlines")
class JsonCoreferenceReader(RecordReader[Document], CoreferenceReader):
    """Reads one JSON object per line, with `sentences` and optionally the other keys.

    `doc_key` is the name of the document, or with `key_has_part` that and the number of its part,
    as e2e-coref names those of CoNLL-2012: `nw/lamp_01_0`. `speakers` are as many as the words;
    `clusters` are lists of [first word, last word], counted through the sentences from 0.

    Args:
        key_has_part: whether the last `_` of `doc_key` is followed by the number of a part, so that
            predictions in columns name the document and its part like the gold columns.
    """

    formats: ClassVar[Collection[FileFormat]] = (FileFormat.JSON_LINES,)
    input_type = list

    def __init__(
        self,
        max_sentences: Count | None = None,
        remove_singletons: bool = False,
        genre_pattern: str | None = ONTONOTES,
        key_has_part: bool = False,
        max_instances: Count | None = None,
    ) -> None:
        super().__init__(max_sentences, remove_singletons, genre_pattern, max_instances)
        self._key_has_part = key_has_part

    def documents(self, file: Path) -> Iterator[Document]:
        """Yield the documents of a file as they are written."""
        return map(self._document, self.records(file))

    @property
    def input_keys(self) -> Sequence[str]:
        """The key of the sentences."""
        return ("sentences",)

    @property
    def other_keys(self) -> Sequence[str]:
        """The keys of further inputs of a model; `doc_key` is also in the output."""
        return ("speakers", "genre")

    def records(self, file: Path) -> Iterator[Record]:
        return read_objects(file)

    def unlabeled(self, record: Record) -> Document:
        """Make an example without clusters; the object's `genre` has precedence."""
        with error_context(record.path, record.line):
            document = self._unlabeled(record.values)
            if "genre" in record.values:
                document = replace(document, genre=string_of(record.values, "genre"))
            return document

    def _document(self, record: Record) -> Document:
        with error_context(record.path, record.line):
            document = self._unlabeled(record.values)
            if "clusters" in record.values:
                document = replace(document, clusters=clusters(record.values, "clusters"))
            return document

    def _unlabeled(self, values: Mapping[str, Any]) -> Document:
        key, part = string_of(values, "doc_key") if "doc_key" in values else "", None
        if self._key_has_part:
            key, part = _divided(key)
        return Document(
            sentences=word_lists(values, "sentences"),
            clusters=None,
            key=key,
            part=part,
            speakers=word_lists(values, "speakers") if "speakers" in values else None,
            genre=self.genres.genre(key),
        )


def _divided(key: str) -> tuple[str, str]:
    """Return the name of a document, and its part in the form of CoNLL-2012."""
    name, _, part = key.rpartition("_")
    if not part.isdecimal() or not name:
        raise DataError(f"'doc_key' is {key!r}; expected a name, '_' and the number of a part")
    return name, f"{int(part):03}"
