"""The folder in which a result grows, and what makes an interrupted job go on there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from elmo_framework.common.errors import RunError
from elmo_framework.common.files import remove, remove_folder, repairable, require_file_size
from elmo_framework.common.logs import show_size
from elmo_framework.common.unfinished import UnfinishedFolder, damaged
from elmo_framework.embedding.corpus import Line, Survey
from elmo_framework.embedding.layout import FORMAT, HEADER, Layout

_HDF5_HEADER = 1 << 16
"""More bytes than an HDF5 file without vectors has."""


@final
class Workplace:
    """The folder `OUT.partial` beside a result `OUT`; gone when the result is there.

    | name | what |
    |---|---|
    | `result` | what gets the name of the result |
    | `places.bin` | the byte of each line's vectors in it, int64 |
    | `settings.json` | what the job computes |
    | `done-R.txt` | the pools whose vectors process R has written, a line each |

    Args:
        output: the result.
    """

    def __init__(self, output: Path) -> None:
        folder = UnfinishedFolder(output, flag="--output-file", require_ours=_require_result)
        self.output, self.path, self.locked = output, folder.path, folder.locked
        self.require_free, self._begin = folder.require_free, folder.begin
        self._is_begun = folder.is_begun
        self.result, self._places = self.path / "result", self.path / "places.bin"

    def is_named(self) -> bool:
        """Tell whether a job ended between naming the result and removing the rest."""
        is_gone = self._is_begun() and not self.result.exists()
        return is_gone and os.path.lexists(self.output)

    def prepare(
        self,
        settings: Mapping[str, Any],
        layout: Layout,
        survey: Survey,
        lines: Callable[[], Iterable[Line]],
        *,
        resume: bool,
    ) -> None:
        """Make the result without its vectors, unless an interrupted job has made the same.

        Raises:
            RunError: the interrupted job computes something else, or the disk is too small.
        """
        is_named = resume and self.is_named()
        if not is_named:
            num_bytes = layout.num_bytes(survey) + 8 * survey.num_lines
            # HDF5 needs somewhat more than is foreseen, and would end the process.
            require_file_size(self.output, num_bytes * 5 // 4 + _HDF5_HEADER)
            self._require_room(num_bytes - _allocated(self.path))
        is_made = is_named or self.result.exists()
        with _resumable(self.path):
            if not self._begin(settings, resume=resume and is_made):
                self._places.write_bytes(layout.create(self.result, survey, lines).data)

    def places(self) -> NDArray[np.int64]:
        """Return the byte of each line's vectors."""
        return np.fromfile(self._places, dtype=np.int64)

    def done(self) -> set[int]:
        """Return the pools that are written."""
        files = self.path.glob("done-*.txt")
        lines = [line for file in files for line in file.read_bytes().splitlines(keepends=True)]
        try:
            return {int(line) for line in lines if line.endswith(b"\n")}
        except ValueError as error:
            raise damaged(self.path, error) from error

    def writer(self, layout: Layout, rank: int) -> VectorWriter:
        """Return what writes the vectors of one process."""
        return VectorWriter(layout.file(self.result), self.path / f"done-{rank}.txt")

    def finish(self, layout: Layout, survey: Survey) -> None:
        """Give the result its name.

        Raises:
            RunError: the disk is full, or damaged.
        """
        if self.result.exists():
            with _resumable(self.path):
                layout.complete(self.result, survey, self.places())
            remove(self.output)
            self.result.replace(self.output)
        remove_folder(self.path)

    def _require_room(self, num_bytes: int) -> None:
        free = shutil.disk_usage(self.output.parent).free
        if num_bytes > free:
            raise RunError(
                f"{self.output}: the result needs {show_size(num_bytes)} more, and the disk has "
                f"{show_size(free)}; choose another disk, --dtype float16, or fewer --layers"
            )


@final
class VectorWriter:
    """Writes what one process computes.

    Args:
        file: of the vectors.
        journal: where the pools that are done are noted.
    """

    def __init__(self, file: Path, journal: Path) -> None:
        self._path = file
        self._file = os.open(file, os.O_WRONLY)
        self._journal = journal.open("a+b", buffering=0)
        self._journal.seek(0)
        # A process that was killed may have left half a line at the end.
        self._journal.truncate(self._journal.read().rfind(b"\n") + 1)

    def __enter__(self) -> VectorWriter:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)
        self._journal.close()

    def write(self, vectors: NDArray[Any], place: int) -> None:
        """Write a sentence.

        Raises:
            RunError: the disk is full, or damaged.
        """
        content = memoryview(vectors.tobytes())
        with _resumable(self._path):
            while content:
                written = os.pwrite(self._file, content, place)
                content, place = content[written:], place + written

    def note(self, pool: int) -> None:
        """Note a pool whose vectors have been written; they are on the disk before the note.

        Raises:
            RunError: the disk is full, or damaged.
        """
        with _resumable(self._path):
            os.fsync(self._file)
            self._journal.write(b"%d\n" % pool)
            os.fsync(self._journal.fileno())


def _resumable(path: Path) -> AbstractContextManager[None]:
    return repairable(path, to_go_on="--resume goes on from here")


def _require_result(output: Path) -> None:
    """Refuse to remove what is no file of vectors: `--force` is for those."""
    if output.is_dir():
        header = output / HEADER
        if header.is_file() and FORMAT in header.read_text(encoding="utf-8", errors="replace"):
            return
        raise RunError(f"{output} is a folder with something else in it; --force leaves it alone")
    if not output.is_file():
        raise RunError(f"{output} is no ordinary file; --force leaves it alone")


def _allocated(folder: Path) -> int:
    return sum(held.stat().st_blocks for held in folder.rglob("*")) * 512
