"""The vectors of a corpus, computed chunk by chunk and written to their offsets in a file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from elmo_framework.console import ProgressBar
from elmo_framework.embedding.corpus import CorpusIndex, SentenceFiles
from elmo_framework.embedding.vector_file_format import VectorFileFormat
from elmo_framework.embedding.vector_reader import VectorReader

_BATCHES_PER_CHUNK = 32
"""The sentences of so many full batches are sorted by length together."""

WriteAt: TypeAlias = Callable[[NDArray[Any], int], None]
"""Writes vectors at a byte offset of the file of vectors."""


@final
@dataclass(frozen=True)
class CorpusVectors:
    """The vectors of the distinct sentences of a corpus, in chunks.

    A chunk is the unit of work of a process, and of what a resumed job does not repeat. Its
    sentences are sorted by length into batches.

    Attributes:
        corpus: the sentences.
        corpus_index: their lengths and digests.
        reader: computes their vectors.
        layout: of the result file.
    """

    corpus: SentenceFiles
    corpus_index: CorpusIndex
    reader: VectorReader
    layout: VectorFileFormat

    @cached_property
    def file_index(self) -> CorpusIndex:
        """The index of the file: that of the corpus, but a pooled sentence has one word."""
        index = self.corpus_index
        return index.as_pooled() if self.reader.shape.is_pooled else index

    @property
    def chunks(self) -> range:
        """The numbers of all chunks, which take words in their order."""
        return range(-(-self.corpus_index.num_words // self._chunk_words))

    def num_words(self, chunks: Sequence[int]) -> int:
        """Return the number of words in distinct sentences of some chunks."""
        index = self.corpus_index
        offsets = index.offsets if index.documents is None else index.offsets[index.documents]
        is_inside = index.is_first & np.isin(offsets // self._chunk_words, chunks)
        return int(index.lengths[is_inside].sum(dtype=np.int64))

    def read_chunks(
        self, wanted: Collection[int]
    ) -> Iterator[tuple[int, Mapping[int, Sequence[str]]]]:
        """Yield the numbers of chunks, and the words of each line by its number in the input."""
        index = self.corpus_index
        lines = (
            (self._chunk(number), number, line)
            for number, line in enumerate(self.corpus.lines())
            if index.is_first[number] and index.lengths[number]
        )
        for chunk, members in groupby(lines, key=itemgetter(0)):
            if chunk in wanted:
                yield chunk, {number: self.corpus.words(line) for _, number, line in members}

    def write_chunk(
        self,
        sentences: Mapping[int, Sequence[str]],
        offsets: NDArray[np.int64],
        write: WriteAt,
        progress: ProgressBar,
    ) -> None:
        """Compute and write the vectors of a chunk.

        Args:
            sentences: as of `read_chunks`.
            offsets: the byte offset of each line's vectors.
            write: writes the vectors of a sentence.
            progress: advances by the words of each.
        """
        lines = list(sentences)
        groups = groupby(lines, key=self._first_line_of_document)
        documents = [[sentences[line] for line in group] for _, group in groups]
        for index, vectors in self.reader.read(documents):
            write(self.layout.to_file_layout(vectors), int(offsets[lines[index]]))
            progress.advance(len(sentences[lines[index]]))

    def complete(self, path: Path, offsets: NDArray[np.int64]) -> None:
        """Write what is in no chunk: the zeros of blank lines, and what depends on all vectors.

        Args:
            path: of the result.
            offsets: the byte offset of each line's vectors.
        """
        if self.reader.shape.is_pooled:
            index = self.corpus_index
            with self.layout.file(path).open("r+b") as file:
                for line in np.flatnonzero(index.is_first & (index.lengths == 0)).tolist():
                    file.seek(offsets[line])
                    file.write(bytes(self.reader.shape.num_bytes))
        self.layout.complete(path, self.file_index, self.corpus.lines, offsets)

    @property
    def _chunk_words(self) -> int:
        return _BATCHES_PER_CHUNK * self.reader.max_tokens

    def _chunk(self, line: int) -> int:
        """Return the chunk of the first word of a line, or of its document."""
        first = self._first_line_of_document(line)
        return int(self.corpus_index.offsets[first]) // self._chunk_words

    def _first_line_of_document(self, line: int) -> int:
        """Return the first line of the document of a line; without documents the line itself."""
        documents = self.corpus_index.documents
        return line if documents is None else int(documents[line])
