"""Read the CoNLL-2012 columns, with coreference in the last."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import ClassVar, final

from elmo_framework.data.formats.columns import placed_cells
from elmo_framework.data.formats.conll2012 import Conll2012Sentence, read_conll2012
from elmo_framework.data.formats.file_format import FileFormat
from elmo_framework.data.inputs import PredictionInput
from elmo_framework.data.reader import DatasetReader
from elmo_framework.tasks.coreference.brackets import decode
from elmo_framework.tasks.coreference.example import Cluster, Document, Mention, clusters_of
from elmo_framework.tasks.coreference.reader import CoreferenceReader


@final
@DatasetReader.register("coref")
class ConllCoreferenceReader(CoreferenceReader):
    """Reads the columns of the CoNLL-2012 shared task; each part of a document is an example."""

    formats: ClassVar[Collection[FileFormat]] = (FileFormat.CONLL2012,)

    def documents(self, file: Path) -> Iterator[Document]:
        """Yield the documents of a file as they are written."""
        for sentences in _by_document(file):
            yield replace(self._unlabeled(sentences), clusters=_clusters(sentences, file))

    def inputs(self, file: Path) -> Iterator[PredictionInput[Document]]:
        """Yield the documents of a file; their last column is ignored."""
        for sentences in _by_document(file):
            document = self._unlabeled(sentences)
            fields = {"doc_key": document.key, "part": document.part}
            yield PredictionInput(document, fields)

    def _unlabeled(self, sentences: Sequence[Conll2012Sentence]) -> Document:
        return Document(
            sentences=tuple(tuple(map(_unescaped, sentence.words)) for sentence in sentences),
            clusters=None,
            key=sentences[0].document_id,
            part=sentences[0].part,
            speakers=tuple(sentence.speakers for sentence in sentences),
            genre=self.genres.genre(sentences[0].document_id),
        )


def _by_document(file: Path) -> Iterator[list[Conll2012Sentence]]:
    for _, sentences in groupby(read_conll2012(file), lambda sentence: sentence.document):
        yield list(sentences)


def _clusters(sentences: Sequence[Conll2012Sentence], file: Path) -> tuple[Cluster, ...]:
    entities: defaultdict[str, list[Mention]] = defaultdict(list)
    num_words = 0
    for sentence in sentences:
        for entity, start, end in _decoded(sentence, file):
            entities[entity].append(Mention(num_words + start, num_words + end))
        num_words += len(sentence.words)
    return clusters_of(entities.values())


def _unescaped(word: str) -> str:
    # OntoNotes has punctuation with a slash before it; e2e-coref and AllenNLP remove it as well.
    return word[1:] if word in ("/.", "/?") else word


def _decoded(sentence: Conll2012Sentence, file: Path) -> Sequence[tuple[str, int, int]]:
    with placed_cells(file, sentence.first_line):
        return decode(sentence.coreference)
