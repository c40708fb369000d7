"""The files of a prepared corpus: its two splits, and the manifest that verifies all files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from elmo_framework.console import plural
from elmo_framework.errors import DataError, shown
from elmo_framework.io.files import digest
from elmo_framework.io.formats import check_format

MANIFEST = "corpus.json"
KIND, FORMAT = "elmo_framework corpus", 1
"""`format` in the manifest is both."""

CorpusSplit: TypeAlias = Literal["training", "held_out"]
SPLITS: tuple[CorpusSplit, CorpusSplit] = ("training", "held_out")

BEGIN_ID, END_ID = 0, 1
"""The ids of the boundaries of a sentence in the table of words."""

TOKEN, OFFSET = np.dtype("<i4"), np.dtype("<i8")
OFFSETS = "offsets.bin"

SHARD_BYTES = 1 << 29
"""The size after which a new shard is started."""


@final
@dataclass(frozen=True)
class Entry:
    """One file of a corpus; `name` is its path in the corpus."""

    name: str
    num_bytes: int
    sha256: str


def _entry(written: object, path: Path) -> Entry:
    match written:
        case {"name": str(name), "num_bytes": int(num_bytes), "sha256": str(sha256)}:
            relative = PurePosixPath(name)
            if not (relative.is_absolute() or ".." in relative.parts):
                return Entry(name, num_bytes, sha256)
    message = f"expected the name, size and digest of a file in this folder, found {shown(written)}"
    raise DataError(message, path=path)


@final
class EntryWriter:
    """Writes one file of the corpus in `root`, and computes its entry."""

    def __init__(self, root: Path, name: str) -> None:
        self._name, self._num_bytes, self._digest = name, 0, hashlib.sha256()
        self._file = (root / name).open("wb")

    def __enter__(self) -> EntryWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write(self, content: bytes | memoryview) -> None:
        self._file.write(content)
        self._digest.update(content)
        self._num_bytes += len(content)

    @property
    def num_bytes(self) -> int:
        return self._num_bytes

    def entry(self) -> Entry:
        return Entry(self._name, self._num_bytes, self._digest.hexdigest())


@final
@dataclass(frozen=True)
class Manifest:
    """The content of `corpus.json`.

    Attributes:
        settings: the texts and options of the corpus.
        counts: of sentences and words.
        files: all other files.
    """

    settings: Mapping[str, Any]
    counts: Mapping[str, Any]
    files: tuple[Entry, ...]

    def text(self) -> str:
        written = {
            "format": f"{KIND} {FORMAT}",
            "settings": self.settings,
            "counts": self.counts,
            "files": [asdict(entry) for entry in self.files],
        }
        return json.dumps(written, indent=2) + "\n"

    @classmethod
    def read(cls, root: Path) -> Manifest:
        """Read the manifest of a corpus.

        Raises:
            DataError: it is missing, damaged or of a newer format.
        """
        path = root / MANIFEST
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise DataError(
                f"not a prepared corpus ({error}); create one with `elmo prepare`", path=root
            ) from error
        if not (isinstance(content, dict) and str(content.get("format")).startswith(KIND)):
            raise DataError(f"the format is not {KIND!r}; prepare the text again", path=path)
        check_format(content, name="a corpus", supported=FORMAT, path=path)
        match content:
            case {"settings": dict(settings), "counts": dict(counts), "files": list(files)}:
                return cls(settings, counts, tuple(_entry(each, path) for each in files))
        raise DataError("settings, counts or files are damaged; prepare the text again", path=path)

    def entries(self, prefix: str) -> list[Entry]:
        return [entry for entry in self.files if entry.name.startswith(prefix)]

    def verify(self, root: Path, entries: Iterable[Entry]) -> None:
        """Check the size and digest of files.

        Raises:
            DataError: one is missing or has changed.
        """
        for entry in entries:
            path = root / entry.name
            size = path.stat().st_size if path.is_file() else None
            if size != entry.num_bytes:
                expected = plural(entry.num_bytes, "byte")
                problem = "is missing" if size is None else f"has {size:,} of {expected}"
                raise DataError(f"{problem}; prepare the text again", path=path)
            if digest([path]) != entry.sha256:
                message = "its content has changed; prepare the text again"
                raise DataError(message, path=path)


@final
class SplitWriter:
    """Writes the sentences of a split of the corpus in `root`, each with its boundaries."""

    def __init__(self, root: Path, split: CorpusSplit) -> None:
        self._root, self._split = root, split
        self._entries, self._files = list[Entry](), ExitStack()
        self._offsets: EntryWriter | None = None
        self._shard: EntryWriter | None = None
        self._num_tokens = 0
        self.num_sentences = self.num_words = 0

    def __enter__(self) -> SplitWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self._files.close()

    def add(self, ids: NDArray[np.int32], lengths: NDArray[np.int32]) -> None:
        """Append sentences with the concatenated `ids` of their words and their `lengths`."""
        if not len(lengths):
            return
        ends = np.cumsum(lengths.astype(OFFSET) + 2)
        begins = ends - lengths - 2
        is_word = np.ones(ends[-1], bool)
        is_word[begins] = is_word[ends - 1] = False
        tokens = np.full(ends[-1], BEGIN_ID, TOKEN)
        tokens[ends - 1] = END_ID
        tokens[is_word] = ids
        self._open_offsets().write((self._num_tokens + ends).tobytes())
        self._open_shard().write(tokens.tobytes())
        self._num_tokens += len(tokens)
        self.num_sentences += len(lengths)
        self.num_words += len(ids)

    def entries(self) -> list[Entry]:
        """Return the entries of the files; none without sentences."""
        written = [file.entry() for file in (self._offsets, self._shard) if file]
        return [*self._entries, *written]

    def _open_offsets(self) -> EntryWriter:
        if self._offsets is None:
            (self._root / self._split).mkdir()
            self._offsets = self._opened(OFFSETS)
            self._offsets.write(np.zeros(1, OFFSET).tobytes())
        return self._offsets

    def _open_shard(self) -> EntryWriter:
        if self._shard is not None and self._shard.num_bytes >= SHARD_BYTES:
            self._entries.append(self._shard.entry())
            self._shard = None
        if self._shard is None:
            self._shard = self._opened(f"tokens-{len(self._entries):05}.bin")
        return self._shard

    def _opened(self, name: str) -> EntryWriter:
        return self._files.enter_context(EntryWriter(self._root, f"{self._split}/{name}"))
