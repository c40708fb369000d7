"""Documents with coreference as JSON lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, final

from annotated_types import Gt

from elmo_framework.common.errors import DataError
from elmo_framework.data.paths import data_files, read_lines
from elmo_framework.data.reader import DatasetReader
from elmo_framework.data.records import json_object
from elmo_framework.tasks.coreference.example import Document
from elmo_framework.tasks.coreference.fields import clusters, text, word_lists
from elmo_framework.tasks.coreference.genres import ONTONOTES, GenrePattern


@final
@DatasetReader.register("coref_jsonlines")
class JsonCoreferenceReader(DatasetReader[Document]):
    """Reads an object a line, with `sentences` and, where they are known, the other keys.

    `doc_key` is the name of the document; `speakers` are as many as the words; `clusters` are
    lists of [first word, last word], counted through the sentences from 0.

    Args:
        max_sentences: how many sentences of each document are kept; null for all. Mentions of
            others are left out.
        remove_singletons: whether things that are mentioned once are left out.
        genre_pattern: a regular expression whose one group finds the genre in the name of a
            document; that of OntoNotes unless given, null for no genres.
        max_instances: how many documents are read; null for all.
    """

    example_type = Document

    def __init__(
        self,
        max_sentences: Annotated[int, Gt(0)] | None = None,
        remove_singletons: bool = False,
        genre_pattern: str | None = ONTONOTES,
        max_instances: Annotated[int, Gt(0)] | None = None,
    ) -> None:
        self._genres = GenrePattern(genre_pattern)
        self._max_sentences, self._remove_singletons = max_sentences, remove_singletons
        self._max_instances = max_instances

    def read(self, path: Path) -> Iterator[Document]:
        """Yield the documents of a file, or of the files of a folder or a pattern."""
        documents = (document for file in data_files(path) for document in self._documents(file))
        return islice(documents, self._max_instances)

    def _documents(self, file: Path) -> Iterator[Document]:
        is_empty = True
        for number, line in read_lines(file):
            if not line.strip():
                continue
            try:
                yield self._document(json_object(line))
            except (DataError, ValueError) as error:
                raise DataError(str(error), path=file, line=number) from error
            is_empty = False
        if is_empty:
            raise DataError("this file holds no document", path=file)

    def _document(self, held: Mapping[str, Any]) -> Document:
        key = text(held, "doc_key") if "doc_key" in held else ""
        whole = Document(
            sentences=word_lists(held, "sentences"),
            clusters=clusters(held, "clusters") if "clusters" in held else None,
            key=key,
            speakers=word_lists(held, "speakers") if "speakers" in held else None,
            genre=self._genres.genre(key),
        )
        return whole.cut(self._max_sentences, remove_singletons=self._remove_singletons)
