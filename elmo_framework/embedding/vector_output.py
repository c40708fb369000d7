"""Write vectors into the resumable output of `elmo embed`, and record which are written."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from elmo_framework.console import format_bytes
from elmo_framework.embedding.corpus import CorpusIndex, Line
from elmo_framework.embedding.vector_file_format import HEADER, KIND, VectorFileFormat
from elmo_framework.errors import RunError
from elmo_framework.io.files import require_file_size
from elmo_framework.io.resumable_output import ResumableOutput, check_file

_HDF5_HEADER = 1 << 16
"""More bytes than an HDF5 file without vectors has."""

_OFFSETS = "places.bin"


def vector_output(path: Path) -> ResumableOutput:
    """Return the output for a file or a folder of vectors, which is complete but for its vectors.

    In addition to the files of `ResumableOutput`, its folder contains `places.bin`, the byte offset
    of each line's vectors in the result, int64. `done-R.txt` lists the chunks that process R has
    written.
    """
    return ResumableOutput(path, flag="--output-file", check_replaceable=_check_replaceable)


def create_vectors(
    output: ResumableOutput,
    settings: Mapping[str, Any],
    layout: VectorFileFormat,
    corpus_index: CorpusIndex,
    lines: Callable[[], Iterable[Line]],
    *,
    resume: bool,
) -> None:
    """Make the result without its vectors, unless an interrupted job has made the same.

    Raises:
        RunError: the interrupted job computes something else, or the disk is too small.
    """
    is_named = resume and output.is_named()
    if not is_named:
        num_bytes = layout.num_bytes(corpus_index) + 8 * corpus_index.num_lines
        # HDF5 needs somewhat more than is foreseen, and would end the process.
        require_file_size(output.output, num_bytes * 5 // 4 + _HDF5_HEADER)
        _require_space(output.output, num_bytes - _allocated(output.path))
    is_made = is_named or output.result.exists()
    with output.repairable():
        if not output.begin(settings, resume=resume and is_made):
            offsets = layout.create(output.result, corpus_index, lines)
            (output.path / _OFFSETS).write_bytes(offsets.data)


def read_offsets(output: ResumableOutput) -> NDArray[np.int64]:
    """Return the byte offset of each line's vectors."""
    return np.fromfile(output.path / _OFFSETS, dtype=np.int64)


def write_at(descriptor: int, vectors: NDArray[Any], offset: int) -> None:
    """Write the bytes of vectors at an offset of an open file."""
    content = memoryview(vectors.tobytes())
    while content:
        os.lseek(descriptor, offset, os.SEEK_SET)  # Windows has no pwrite
        written = os.write(descriptor, content)
        content, offset = content[written:], offset + written


@final
class VectorWriter:
    """Writes the vectors that one process computes."""

    def __init__(self, resumable: ResumableOutput, file: Path, rank: int) -> None:
        self._resumable, self._path = resumable, file
        self._file = os.open(file, os.O_WRONLY | getattr(os, "O_BINARY", 0))
        self._journal = resumable.journal(f"done-{rank}.txt")

    def __enter__(self) -> VectorWriter:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)
        self._journal.close()

    def write(self, vectors: NDArray[Any], offset: int) -> None:
        """Write a sentence.

        Raises:
            RunError: the disk is full, or damaged.
        """
        with self._resumable.repairable(self._path):
            write_at(self._file, vectors, offset)

    def mark_done(self, chunk: int) -> None:
        """Record a chunk whose vectors have been written; they are on the disk before the record.

        Raises:
            RunError: the disk is full, or damaged.
        """
        with self._resumable.repairable(self._path):
            os.fsync(self._file)
            self._journal.mark_done(str(chunk))


def _check_replaceable(output: Path) -> None:
    """Refuse to remove anything but a file of vectors, also with `--force`."""
    if not output.is_dir():
        check_file(output)
        return
    header = output / HEADER
    if not (header.is_file() and KIND in header.read_text(encoding="utf-8", errors="replace")):
        raise RunError(f"{output} contains other files; --force does not remove them")


def _require_space(output: Path, num_bytes: int) -> None:
    free = shutil.disk_usage(output.parent).free
    if num_bytes > free:
        raise RunError(
            f"{output}: the result needs {format_bytes(num_bytes)} more, and the disk has "
            f"{format_bytes(free)}; choose another disk, --dtype float16, or fewer --layers"
        )


def _allocated(folder: Path) -> int:
    stats = [path.stat() for path in folder.rglob("*")]
    # Windows counts no blocks.
    return sum(getattr(each, "st_blocks", each.st_size // 512) for each in stats) * 512
