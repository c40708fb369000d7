"""Shards of a corpus: the units of work of jobs that share a folder of vectors.

The boundaries of shards come from the input alone: a plain file is cut into blocks of
`SHARD_BYTES`, and a line belongs to the block in which its first byte is. A compressed file is cut
the same way, but belongs to one part as a whole, since it is read from its beginning. A shard of a
table is a row group of Parquet, or a record batch of Arrow.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from hashlib import blake2b
from io import BytesIO
from pathlib import Path
from typing import Any, final

from filelock import FileLock

from elmo_framework.config.job_part import JobPart
from elmo_framework.corpus.blocks import LineRange, first_line, sample_digest, split_lines
from elmo_framework.data.formats.compressed import decompressed, is_compressed, reading
from elmo_framework.data.formats.text_files import decoded_lines, error_context
from elmo_framework.data.tokenizer import Tokenizer
from elmo_framework.embedding.arrow_files import TABLE_SUFFIXES, Columns, RowGroup, TableFile
from elmo_framework.embedding.corpus import Line
from elmo_framework.errors import DataError, RunError, truncated
from elmo_framework.io.files import replacing, write_text
from elmo_framework.io.remote import RemotePath

SHARD_BYTES = 1 << 20
"""The text of a shard, about 10,000 sentences; the work that is lost if a job is killed."""

_SETTINGS = "_settings.json"
"""Readers of a folder of Parquet files skip names with this beginning."""

_DIGESTS = ("biLM", "content")
"""The settings that are digests."""

_DEFAULT_COLUMNS = Columns()


@final
@dataclass(frozen=True)
class TextShard:
    """Whole lines of one file.

    Attributes:
        name: sorts shards in the order of the input.
        range: their content.
    """

    name: str
    range: LineRange | RowGroup

    @property
    def digest(self) -> str:
        """The digest of the content."""
        if isinstance(self.range, RowGroup):
            return self.range.digest
        return blake2b(self.range.content, digest_size=16).hexdigest()

    def lines(self, tokenizer: Tokenizer) -> list[Line]:
        """Tokenize the lines, which fit into memory.

        The id of a line is that of its row, or `NAME/NUMBER`, from 0.

        Raises:
            DataError: they are not UTF-8, or the tokenizer fails.
        """
        if isinstance(self.range, RowGroup):
            return self._rows(self.range, tokenizer)
        path, content = self.range.path, BytesIO(self.range.content)
        numbered = enumerate(decoded_lines(content, path, first=self.range.first_line))
        lines = (
            Line(path, number, text.strip(), id=f"{self.name}/{index}")
            for index, (number, text) in numbered
        )
        return [replace(line, tokens=line.words(tokenizer)) for line in lines]

    def _rows(self, group: RowGroup, tokenizer: Tokenizer) -> list[Line]:
        ids = group.ids or [f"{self.name}/{index}" for index in range(len(group.texts))]
        lines = list[Line]()
        for index, (text, id_) in enumerate(zip(group.texts, ids, strict=True)):
            with error_context(group.path, None):
                words = tokenizer.words(text.strip()) if isinstance(text, str) else text
            lines.append(Line(group.path, index + 1, " ".join(words), words, id_))
        return lines


def read_shards(
    files: Sequence[Path], part: JobPart, columns: Columns = _DEFAULT_COLUMNS
) -> Iterator[TextShard]:
    """Yield the shards of a part; those of other parts are not read.

    Args:
        files: text, or tables.
        part: takes every `total`-th block or group, or compressed file.
        columns: of tables.

    Raises:
        DataError: a file cannot be read, or all are empty.
    """
    unit = 0
    for number, file in enumerate(files):
        num_units = _num_units(file)
        own = range((part.number - unit) % part.total, num_units, part.total)
        unit += num_units
        for block, content in _read(file, own, columns) if own else ():
            yield TextShard(f"{number:06}-{block:06}", content)
    if not unit:
        raise DataError("no lines to embed", path=files[0])


def _num_units(file: Path) -> int:
    """Return how many units of work a file is; a compressed one is one."""
    if is_table(file):
        return len(TableFile(file))
    return 1 if is_compressed(file) else _num_blocks(file)


def _read(file: Path, own: range, columns: Columns) -> Iterator[tuple[int, LineRange | RowGroup]]:
    """Yield the blocks of some units that are not empty."""
    if is_table(file):
        table = TableFile(file)
        groups = ((group, table.read(group, columns)) for group in own)
        yield from ((group, rows) for group, rows in groups if rows.texts)
        return
    ranges: Iterator[tuple[int, LineRange]]
    with reading(file) as stream:
        if is_compressed(file):
            ranges = enumerate(split_lines(decompressed(stream, file), file, SHARD_BYTES))
        else:
            ranges = ((block, _read_block(stream, file, block)) for block in own)
        yield from ((block, lines) for block, lines in ranges if lines.content)


def input_settings(files: Sequence[Path]) -> dict[str, Any]:
    """Return what identifies the input: the names of its files, and digests of their samples."""
    return {
        "files": [file.name for file in files],
        "content": [_sample_digest_if_local(file) for file in files],
        "shard_bytes": SHARD_BYTES,
    }


def is_table(file: Path) -> bool:
    """Return whether a file is read as a table."""
    return file.suffix in TABLE_SUFFIXES


def _sample_digest_if_local(file: Path) -> str | None:
    """Return a digest; None for compressed remote files, which only one part copies."""
    is_copied = isinstance(file, RemotePath) and is_compressed(file)
    return None if is_copied else sample_digest(file)


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
        """Make the folder, or replace its settings while it has no shard.

        Raises:
            RunError: the folder has other files, or shards of other settings.
        """
        self._path.mkdir(parents=True, exist_ok=True)
        with self._settings_lock():
            files = (file for file in self._path.iterdir() if not file.name.startswith("."))
            other = next((file for file in files if file.name != _SETTINGS), None)
            if other is None:
                write_text(self._path / _SETTINGS, self._settings)
            elif not (self._path / _SETTINGS).exists():
                raise RunError(
                    f"--output-dir {self._path} contains other files ({other.name}, ...); "
                    "choose another folder"
                )
            self._check_same()

    @contextmanager
    def writing(self, shard: TextShard) -> Iterator[Path | None]:
        """Yield a temporary path for a shard, renamed if the body succeeds; None if it exists.

        Of jobs that want the same shard, one writes it, and the others wait for it. The digest of
        its text is in `.NAME.input`.

        Raises:
            RunError: it exists, and its text has changed; or a job of other settings has taken the
                folder since `create`.
        """
        path = self._path / (shard.name + self._suffix)
        digest = self._path / f".{shard.name}.input"
        if path.exists():
            _check_unchanged(shard, digest)
            yield None
            return
        lock = self._path / f".{shard.name}.lock"
        with FileLock(lock):
            if path.exists():
                yield None
            else:
                with ExitStack() as until_renamed, replacing(path) as aside:
                    yield aside
                    # A folder without shards may have been given other settings meanwhile.
                    until_renamed.enter_context(self._settings_lock())
                    self._check_same()
                    digest.write_text(shard.digest, encoding="utf-8")
            # Only once the shard exists: whoever waits for this lock finds it.
            lock.unlink(missing_ok=True)

    def _settings_lock(self) -> FileLock:
        return FileLock(self._path / ".settings.lock")

    def _check_same(self) -> None:
        before = json.loads((self._path / _SETTINGS).read_text(encoding="utf-8"))
        now = json.loads(self._settings)
        names = [name for name in before | now if before.get(name) != now.get(name)]
        if names:
            changes = "; ".join(_change(name, before.get(name), now.get(name)) for name in names)
            raise RunError(
                f"--output-dir {self._path}: its shards have other settings ({changes}); "
                "use the same, or choose another folder"
            )


def _change(name: str, before: Any, now: Any) -> str:
    """Write how a setting differs; of one with digests, which nobody compares, only its name."""
    if name in _DIGESTS:
        return name
    return f"{name}: {truncated(_as_text(before))} -> {truncated(_as_text(now))}"


def _as_text(setting: Any) -> str:
    if isinstance(setting, list):
        return ", ".join(str(value) for value in setting if value is not None)
    return "default" if setting is None else str(setting)


def _check_unchanged(shard: TextShard, digest: Path) -> None:
    if digest.exists() and digest.read_text(encoding="utf-8") != shard.digest:
        raise RunError(
            f"{shard.range.path}: the text of shard {shard.name} has changed since its vectors "
            "were written; choose another --output-dir"
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
    return LineRange(path, first_line(stream, begin, content), content, begin)
