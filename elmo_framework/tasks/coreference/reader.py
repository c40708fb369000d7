"""What the readers of documents with coreference share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path

from elmo_framework.config.types import Count
from elmo_framework.data.reader import FileReader
from elmo_framework.tasks.coreference.example import Document
from elmo_framework.tasks.coreference.genres import ONTONOTES, GenrePattern


class CoreferenceReader(FileReader[Document]):
    """Reads documents, each an example, and leaves out of them what is not asked for.

    Attributes:
        genres: finds the genre in the name of a document.

    Args:
        max_sentences: how many sentences of each document are kept; null for all. Mentions of
            others are left out.
        remove_singletons: whether things that are mentioned once are left out.
        genre_pattern: a regular expression whose one group finds the genre in the name of a
            document; that of OntoNotes unless given, null for no genres.
    """

    example_type = Document

    def __init__(
        self,
        max_sentences: Count | None = None,
        remove_singletons: bool = False,
        genre_pattern: str | None = ONTONOTES,
        max_instances: Count | None = None,
    ) -> None:
        super().__init__(max_instances)
        self.genres = GenrePattern(genre_pattern)
        self.max_sentences, self.remove_singletons = max_sentences, remove_singletons

    def examples(self, file: Path) -> Iterator[Document]:
        """Yield the documents of a file."""
        for whole in self.documents(file):
            yield whole.cut(self.max_sentences, remove_singletons=self.remove_singletons)

    @abstractmethod
    def documents(self, file: Path) -> Iterator[Document]:
        """Yield the documents of a file as they are written."""
