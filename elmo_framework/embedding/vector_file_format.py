"""Formats of files of vectors.

A file is created in full before any vector is computed, with space for every sentence at a known
offset. Each sentence is written alone, so processes can share the work, and one that dies leaves
nothing broken.
"""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import h5py  # type: ignore[import-untyped]
import numpy as np
from numpy.typing import NDArray

from elmo_framework.embedding.corpus import CorpusIndex, Line
from elmo_framework.errors import DataError
from elmo_framework.io.files import write_text

HEADER = "header.json"
KIND, FORMAT = "elmo_framework embeddings", 1

_HDF5_BYTES_A_LINE = 500
"""The size of a dataset without its numbers: its header, its name and its entry in the list."""

_NPY_BYTES = 1024


@dataclass(frozen=True)
class VectorShape:
    """The shape and type of what is written for each word.

    Attributes:
        rows: number of vectors of a word; None for one vector without a row axis.
        dim: the dimension of a vector.
        dtype: of the numbers, by NumPy's name.
        is_pooled: whether a sentence has one vector, as if it had one word.
    """

    rows: int | None
    dim: int
    dtype: str
    is_pooled: bool = False

    @property
    def num_bytes(self) -> int:
        """The bytes of a word."""
        return (self.rows or 1) * self.dim * np.dtype(self.dtype).itemsize

    def of_array(self, num_words: int) -> tuple[int, ...]:
        """Return "words rows dim", or "words dim" where a word has one vector."""
        return (num_words, self.dim) if self.rows is None else (num_words, self.rows, self.dim)


class VectorFileFormat(ABC):
    """A format of a file of vectors."""

    def __init__(self, shape: VectorShape) -> None:
        self.shape = shape

    @abstractmethod
    def num_bytes(self, corpus_index: CorpusIndex) -> int:
        """Return about how large the result will be."""

    @abstractmethod
    def create(
        self, path: Path, corpus_index: CorpusIndex, lines: Callable[[], Iterable[Line]]
    ) -> NDArray[np.int64]:
        """Make the result without its vectors, and return the byte offset of each line's vectors.

        Args:
            path: of the result; nothing exists there yet.
            corpus_index: of the corpus.
            lines: reads the corpus.

        Raises:
            DataError: a sentence cannot be stored in this format.
        """

    def complete(
        self,
        path: Path,
        corpus_index: CorpusIndex,
        lines: Callable[[], Iterable[Line]],
        offsets: NDArray[np.int64],
    ) -> None:
        """Write what depends on vectors, once all are written; nothing by default.

        Args:
            path: of the result.
            corpus_index: of the corpus.
            lines: reads the corpus.
            offsets: the offsets that `create` returned.
        """
        return

    def file(self, path: Path) -> Path:
        """Return the file that holds the vectors, by default the result itself."""
        return path

    def to_file_layout(self, vectors: NDArray[Any]) -> NDArray[Any]:
        """Turn "words dim" or "rows words dim" into the layout of the file.

        By default, words are first, so that a sentence is one slice.
        """
        return vectors if self.shape.rows is None else vectors.swapaxes(0, 1)


@final
class NpyFolderFormat(VectorFileFormat):
    """A folder with one array of all vectors and an index.

    | name | what |
    |---|---|
    | `vectors.npy` | "words rows dim", or "words dim" where a word has one vector |
    | `index.npy` | "lines 2": where each line's vectors begin, and how many there are; int64 |
    | `header.json` | the format, the shape of `vectors.npy` and its type, the number of lines |

    Lines with the same words share their vectors.
    """

    def num_bytes(self, corpus_index: CorpusIndex) -> int:
        return (
            corpus_index.num_words * self.shape.num_bytes + 16 * corpus_index.num_lines + _NPY_BYTES
        )

    def create(
        self, path: Path, corpus_index: CorpusIndex, lines: Callable[[], Iterable[Line]]
    ) -> NDArray[np.int64]:
        path.mkdir()
        begin = _create_npy(self.file(path), self.shape, corpus_index.num_words)
        with (path / "index.npy").open("wb") as file:
            write_npy_header(file, (corpus_index.num_lines, 2), "int64")
            file.write(np.stack([corpus_index.offsets, corpus_index.lengths], axis=1).data)
        header = {
            "format": f"{KIND} {FORMAT}",
            "shape": self.shape.of_array(corpus_index.num_words),
            "dtype": self.shape.dtype,
            "num_lines": corpus_index.num_lines,
        }
        write_text(path / HEADER, json.dumps(header, indent=2) + "\n")
        return corpus_index.offsets * self.shape.num_bytes + begin

    def file(self, path: Path) -> Path:
        return path / "vectors.npy"


@final
class NpyFileFormat(VectorFileFormat):
    """One array of the vectors of all words, line after line, for `numpy.load`.

    It is "words rows dim", or "words dim" where a word has one vector. Lines with the same words
    have copies, so that the lengths of the lines determine where each begins.
    """

    def num_bytes(self, corpus_index: CorpusIndex) -> int:
        return int(corpus_index.lengths.sum(dtype=np.int64)) * self.shape.num_bytes + _NPY_BYTES

    def create(
        self, path: Path, corpus_index: CorpusIndex, lines: Callable[[], Iterable[Line]]
    ) -> NDArray[np.int64]:
        ends = corpus_index.lengths.cumsum(dtype=np.int64)
        begin = _create_npy(path, self.shape, int(ends[-1]))
        return (ends - corpus_index.lengths.astype(np.int64)) * self.shape.num_bytes + begin

    def complete(
        self,
        path: Path,
        corpus_index: CorpusIndex,
        lines: Callable[[], Iterable[Line]],
        offsets: NDArray[np.int64],
    ) -> None:
        """Copy the vectors of lines that were computed once to the others with the same words."""
        with path.open("r+b") as file:
            for line in np.flatnonzero(~corpus_index.is_first).tolist():
                file.seek(offsets[corpus_index.first[line]])
                vectors = file.read(int(corpus_index.lengths[line]) * self.shape.num_bytes)
                file.seek(offsets[line])
                file.write(vectors)
            file.flush()
            os.fsync(file.fileno())


@final
class Hdf5Format(VectorFileFormat):
    """The file of `allennlp elmo`: a dataset "0", "1", ... for each line.

    A dataset is "rows words dim", or "words dim" where a word has one vector. Lines with the same
    words have one dataset under several names.

    Args:
        shape: the shape and type of what is written for each word.
        keeps_sentences: whether the dataset `sentence_to_index` holds a JSON object with the
            number of each sentence; of equal ones the last counts.
        uses_sentence_keys: whether datasets are named by their sentences.
    """

    def __init__(
        self, shape: VectorShape, *, keeps_sentences: bool, uses_sentence_keys: bool
    ) -> None:
        super().__init__(shape)
        self._keeps_sentences = keeps_sentences and not uses_sentence_keys
        self._uses_keys = uses_sentence_keys

    def num_bytes(self, corpus_index: CorpusIndex) -> int:
        return (
            corpus_index.num_words * self.shape.num_bytes
            + _HDF5_BYTES_A_LINE * corpus_index.num_lines
        )

    def create(
        self, path: Path, corpus_index: CorpusIndex, lines: Callable[[], Iterable[Line]]
    ) -> NDArray[np.int64]:
        offsets = np.zeros(corpus_index.num_lines, dtype=np.int64)
        with h5py.File(path, "w") as file:
            if self._uses_keys:
                for index, line in enumerate(lines()):
                    offsets[index] = self._add_sentence(file, corpus_index, index, line)
            else:
                self._add_numbered(file, corpus_index, offsets)
            if self._keeps_sentences:
                numbers = {line.text: str(index) for index, line in enumerate(lines())}
                dataset = file.create_dataset("sentence_to_index", (1,), h5py.string_dtype())
                dataset[0] = json.dumps(numbers)
        return offsets

    def to_file_layout(self, vectors: NDArray[Any]) -> NDArray[Any]:
        return vectors

    def _add_numbered(
        self, file: h5py.File, corpus_index: CorpusIndex, offsets: NDArray[np.int64]
    ) -> None:
        for index, first in enumerate(corpus_index.first.tolist()):
            if index == first:
                offsets[index] = self._add(file, str(index), int(corpus_index.lengths[index]))
            else:
                file[str(index)] = file[str(first)]

    def _add_sentence(
        self, file: h5py.File, corpus_index: CorpusIndex, index: int, line: Line
    ) -> int:
        try:
            _require_name(file, line, is_first=bool(corpus_index.is_first[index]))
            return self._add(file, line.text, int(corpus_index.lengths[index]))
        except (ValueError, TypeError, OSError) as error:
            message = f"{line.text!r} cannot name a dataset ({error}); drop --use-sentence-keys"
            raise DataError(message, path=line.path, line=line.number) from error

    def _add(self, file: h5py.File, name: str, num_words: int) -> int:
        """Make a dataset whose bytes are allocated already, and return their offset."""
        rows = () if self.shape.rows is None else (self.shape.rows,)
        words = () if self.shape.is_pooled else (num_words,)
        creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        creation.set_layout(h5py.h5d.CONTIGUOUS)
        creation.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        creation.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
        dataset = file.create_dataset(
            name, (*rows, *words, self.shape.dim), self.shape.dtype, dcpl=creation
        )
        return int(dataset.id.get_offset() or 0)


def _require_name(file: h5py.File, line: Line, *, is_first: bool) -> None:
    if not line.text.strip("./") or "\0" in line.text:
        raise ValueError("HDF5 does not allow this name")
    if not is_first or line.text in file:
        raise ValueError("an earlier line has the same words")


def _create_npy(path: Path, shape: VectorShape, num_words: int) -> int:
    """Make an array of vectors without its numbers, and return where these begin."""
    with path.open("wb") as file:
        begin = write_npy_header(file, shape.of_array(num_words), shape.dtype)
        file.truncate(begin + num_words * shape.num_bytes)
    return begin


def write_npy_header(file: Any, shape: tuple[int, ...], dtype: str) -> int:
    """Write the header of a `.npy` file and return where its numbers begin."""
    descr = np.dtype(dtype).newbyteorder("<").str
    header = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    return int(file.tell())
