"""Write the sentences of one part of a corpus."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Literal, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from elmo_framework.corpus.manifest import Entry, EntryWriter

Part: TypeAlias = Literal["training", "held_out"]
PARTS: tuple[Part, Part] = ("training", "held_out")

BEGIN_ID, END_ID = 0, 1
"""The ids of the boundaries of a sentence in the table of words."""

TOKEN, OFFSET = np.dtype("<i4"), np.dtype("<i8")
OFFSETS = "offsets.bin"

SHARD_BYTES = 1 << 29
"""The size after which a new shard is started."""


@final
class PartWriter:
    """Writes the sentences of a part, each with its boundaries.

    Args:
        root: the folder of the corpus.
        part: the name of the part.
    """

    def __init__(self, root: Path, part: Part) -> None:
        self._root, self._part = root, part
        self._entries, self._files = list[Entry](), ExitStack()
        self._offsets: EntryWriter | None = None
        self._shard: EntryWriter | None = None
        self._num_tokens = 0
        self.num_sentences = self.num_words = 0

    def __enter__(self) -> PartWriter:
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
            (self._root / self._part).mkdir()
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
        return self._files.enter_context(EntryWriter(self._root, f"{self._part}/{name}"))
