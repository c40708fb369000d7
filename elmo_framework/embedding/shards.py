"""Shards of a corpus: the units of work of jobs that share a folder of vectors.

The boundaries of shards come from the input alone: a plain file is cut into blocks of
`SHARD_BYTES`, and a line belongs to the block in which its first byte is. A compressed file is cut
the same way, but belongs to one part as a whole, since it is read from its beginning.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from filelock import FileLock

from elmo_framework.corpus.blocks import LineRange, split_lines
from elmo_framework.data.formats.compressed import SUFFIXES, decompressed, reading
from elmo_framework.embedding.job import Part
from elmo_framework.errors import DataError, RunError
from elmo_framework.io.files import replacing, write_text

SHARD_BYTES = 1 << 20
"""The text of a shard, about 10,000 sentences; the work that is lost if a job is killed."""

_SETTINGS = "settings.json"


@final
@dataclass(frozen=True)
class Shard:
    """Whole lines of one file.

    Attributes:
        name: sorts shards in the order of the input.
        lines: their content.
    """

    name: str
    lines: LineRange


def read_shards(files: Sequence[Path], part: Part) -> Iterator[Shard]:
    """Yield the shards of a part; those of other parts are not read.

    Raises:
        DataError: a file cannot be read, or all are empty.
    """
    unit = 0
    for number, file in enumerate(files):
        is_compressed = file.suffix in SUFFIXES
        num_units = 1 if is_compressed else _num_blocks(file)
        own = range((part.number - unit) % part.total, num_units, part.total)
        unit += num_units
        if not own:
            continue
        with reading(file) as stream:
            ranges: Iterator[tuple[int, LineRange]]
            if is_compressed:
                ranges = enumerate(split_lines(decompressed(stream, file), file, SHARD_BYTES))
            else:
                ranges = ((block, _read_block(stream, file, block)) for block in own)
            for block, lines in ranges:
                if lines.content:
                    yield Shard(f"{number:06}-{block:06}", lines)
    if not unit:
        raise DataError("no lines to embed", path=files[0])


def input_settings(files: Sequence[Path]) -> dict[str, Any]:
    """Return what identifies the input: the names of its files, and their sizes in bytes."""
    return {
        "files": [file.name for file in files],
        "sizes": [file.stat().st_size for file in files],
        "shard_bytes": SHARD_BYTES,
    }


@final
class ShardFolder:
    """A folder in which several jobs write shards; each appears by one rename.

    Args:
        path: the folder.
        settings: of every job that writes here, as JSON types.
        suffix: of the names of the shards.
    """

    def __init__(self, path: Path, settings: Mapping[str, Any], *, suffix: str) -> None:
        self._path, self._suffix = path, suffix
        self._settings = json.dumps(dict(settings), indent=2) + "\n"

    def create(self) -> None:
        """Make the folder, unless another job has made it.

        Raises:
            RunError: the folder has other files, or shards of other settings.
        """
        settings = self._path / _SETTINGS
        self._path.mkdir(parents=True, exist_ok=True)
        with FileLock(self._path / ".settings.lock"):
            if not settings.exists():
                files = (file for file in self._path.iterdir() if not file.name.startswith("."))
                if (other := next(files, None)) is not None:
                    raise RunError(
                        f"--output-dir {self._path} contains other files ({other.name}, ...); "
                        "choose another folder"
                    )
                write_text(settings, self._settings)
            self._check_same(settings)

    @contextmanager
    def writing(self, shard: Shard) -> Iterator[Path | None]:
        """Yield a temporary path for a shard, renamed if the body succeeds; None if it exists.

        Of jobs that want the same shard, one writes it, and the others wait for it.
        """
        path = self._path / (shard.name + self._suffix)
        if path.exists():
            yield None
            return
        lock = self._path / f".{shard.name}.lock"
        with FileLock(lock):
            if path.exists():
                yield None
            else:
                with replacing(path) as aside:
                    yield aside
            # Only once the shard exists: whoever waits for this lock finds it.
            lock.unlink(missing_ok=True)

    def _check_same(self, path: Path) -> None:
        before, now = json.loads(path.read_text(encoding="utf-8")), json.loads(self._settings)
        names = [name for name in before | now if before.get(name) != now.get(name)]
        if names:
            raise RunError(
                f"--output-dir {self._path}: its shards have other settings ({', '.join(names)}); "
                "use the same, or choose another folder"
            )


def _num_blocks(file: Path) -> int:
    return -(-file.stat().st_size // SHARD_BYTES)


def _read_block(stream: Any, path: Path, block: int) -> LineRange:
    begin, end = block * SHARD_BYTES, (block + 1) * SHARD_BYTES
    if begin:
        stream.seek(begin - 1)
        stream.readline()  # a line that begins in the block before
        begin = stream.tell()
    content = stream.read(max(0, end - begin))
    if content and not content.endswith(b"\n"):
        content += stream.readline()
    return LineRange(path, _first_line(stream, begin, content), content)


def _first_line(stream: Any, begin: int, content: bytes) -> int:
    """Return the number of the first line: exact where an error will show it, otherwise above 1.

    To count the lines of all blocks, every part would read the whole input.
    """
    try:
        content.decode()
    except UnicodeDecodeError:
        stream.seek(0)
        number = 1
        while begin:
            before = stream.read(min(begin, SHARD_BYTES))
            number, begin = number + before.count(b"\n"), begin - len(before)
        return number
    return 2 if begin else 1
