"""The CoNLL-2012 columns, with coreference in the last."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Annotated, final

from annotated_types import Gt

from elmo_framework.data.columns import placed_cells
from elmo_framework.data.conll2012 import Conll2012Sentence, read_conll2012
from elmo_framework.data.reader import DatasetReader, FileReader
from elmo_framework.tasks.coreference.brackets import decode
from elmo_framework.tasks.coreference.example import Document, Mention, clusters_of
from elmo_framework.tasks.coreference.genres import ONTONOTES, GenrePattern


@final
@DatasetReader.register("coref")
class ConllCoreferenceReader(FileReader[Document]):
    """Reads the columns of the CoNLL-2012 shared task; each part of a document is an example.

    Args:
        max_sentences: how many sentences of each document are kept; null for all.
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
        super().__init__(max_instances)
        self._genres = GenrePattern(genre_pattern)
        self._max_sentences, self._remove_singletons = max_sentences, remove_singletons

    def examples(self, file: Path) -> Iterator[Document]:
        """Yield the documents of a file."""
        sentences = read_conll2012(file)
        for (key, part), held in groupby(sentences, lambda one: (one.document_id, one.part)):
            whole = self._document(key, part, list(held), file)
            yield whole.cut(self._max_sentences, remove_singletons=self._remove_singletons)

    def _document(
        self, key: str, part: str | None, sentences: Sequence[Conll2012Sentence], file: Path
    ) -> Document:
        entities: defaultdict[str, list[Mention]] = defaultdict(list)
        num_words = 0
        for sentence in sentences:
            for entity, start, end in _decoded(sentence, file):
                entities[entity].append(Mention(num_words + start, num_words + end))
            num_words += len(sentence.words)
        return Document(
            sentences=tuple(tuple(map(_unescaped, sentence.words)) for sentence in sentences),
            clusters=clusters_of(entities.values()),
            key=key,
            part=part,
            speakers=tuple(sentence.speakers for sentence in sentences),
            genre=self._genres.genre(key),
        )


def _unescaped(word: str) -> str:
    # OntoNotes has marks with a stroke before them; e2e-coref and AllenNLP take it away as well.
    return word[1:] if word in ("/.", "/?") else word


def _decoded(sentence: Conll2012Sentence, file: Path) -> Sequence[tuple[str, int, int]]:
    with placed_cells(file, sentence.first_line):
        return decode(sentence.coreference)
