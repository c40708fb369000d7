"""Base class for readers of documents with coreference."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path

from elmo_framework.config.types import Count
from elmo_framework.data.reader import FileReader
from elmo_framework.tasks.coreference.example import Document
from elmo_framework.tasks.coreference.genres import ONTONOTES, GenrePattern


class CoreferenceReader(FileReader[Document]):
    """Reads documents, each one example, and optionally truncates and filters them.

    Attributes:
        genres: extracts the genre from the name of a document.

    Args:
        max_sentences: maximum number of sentences of a document; null for all. Mentions in the
            others are removed.
        remove_singletons: whether to remove clusters of one mention.
        genre_pattern: a regular expression whose one group is the genre in the name of a
            document; by default that of OntoNotes, null for no genres.
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
        for whole in self.documents(file):
            yield whole.cut(self.max_sentences, remove_singletons=self.remove_singletons)

    @abstractmethod
    def documents(self, file: Path) -> Iterator[Document]:
        """Yield the unfiltered documents of a file."""
