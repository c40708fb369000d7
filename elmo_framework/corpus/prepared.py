"""Load a part of a prepared corpus as memory-mapped files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from elmo_framework.console import plural
from elmo_framework.corpus.manifest import (
    BEGIN_ID,
    END_ID,
    OFFSET,
    OFFSETS,
    SPLITS,
    TOKEN,
    Manifest,
)
from elmo_framework.corpus.tables import (
    CHARACTER,
    CHARACTERS,
    COUNT,
    COUNTS,
    INDEXER,
    VOCABULARY,
    WORDS,
)
from elmo_framework.corpus.vocabulary_file import as_counts, read_vocabulary_file
from elmo_framework.data.characters import IN_WORD_PADDING_ID
from elmo_framework.errors import DataError, allowed


@final
class ConcatenatedShards:
    """Tokens of several files as one array; none of the files is empty."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._shards = [_mapped(file, TOKEN) for file in files]
        self._starts = np.cumsum([0, *map(len, self._shards)])

    def __len__(self) -> int:
        return int(self._starts[-1])

    def are_below(self, limit: int) -> bool:
        """Return whether all tokens are from 0 to `limit` (exclusive)."""
        return all(int(shard.min()) >= 0 and int(shard.max()) < limit for shard in self._shards)

    def __getitem__(self, positions: NDArray[np.int64]) -> NDArray[np.int32]:
        if len(self._shards) == 1:
            return np.asarray(self._shards[0][positions], TOKEN)
        tokens = np.empty(positions.shape, TOKEN)
        shards = np.searchsorted(self._starts, positions, side="right") - 1
        for shard in np.unique(shards):
            is_inside = shards == shard
            tokens[is_inside] = self._shards[shard][positions[is_inside] - self._starts[shard]]
        return tokens


@final
@dataclass(frozen=True)
class PreparedSplit:
    """The training or held-out part of a corpus.

    Attributes:
        manifest: of the corpus.
        root: the folder of the corpus.
        words: the distinct words; the first two are the boundaries of a sentence.
        ids: the concatenated sentences, each with its boundaries.
        offsets: the start of each sentence in `ids`, and the end of the last one.
    """

    manifest: Manifest
    root: Path
    words: tuple[str, ...]
    ids: ConcatenatedShards
    offsets: NDArray[np.int64]

    @classmethod
    def load(cls, path: Path) -> PreparedSplit:
        """Verify and map the files of a part; `path` is its folder, inside that of the corpus.

        Raises:
            DataError: it is missing, or a file is damaged.
        """
        root, split = path.parent, path.name
        if split not in SPLITS:
            raise DataError(
                f"not a part of a corpus of `elmo prepare`; {allowed(split, SPLITS)}", path=path
            )
        manifest = Manifest.read(root)
        entries = manifest.entries(f"{split}/")
        if not entries:
            raise DataError("this part of the corpus has no sentences", path=path)
        manifest.verify(root, [entry for entry in manifest.files if "/" not in entry.name])
        manifest.verify(root, entries)
        shards = sorted(root / entry.name for entry in entries if not entry.name.endswith(OFFSETS))
        try:
            words = (root / WORDS).read_bytes().decode().split("\n")[:-1]
            offsets = _mapped(path / OFFSETS, OFFSET)
            loaded = cls(manifest, root, tuple(words), ConcatenatedShards(shards), offsets)
            loaded._check()
        except (ValueError, KeyError) as error:
            reason = f"{error} is not in {WORDS}" if isinstance(error, KeyError) else error
            message = f"the files contradict each other ({reason}); prepare the text again"
            raise DataError(message, path=path) from error
        return loaded

    def _check(self) -> None:
        """Check the consistency of files whose digests are right.

        Raises:
            ValueError: they are inconsistent.
            KeyError: a word of the vocabulary is not in the table.
        """
        if len(self.counts) != len(self.words):
            counts = plural(len(self.counts), "word")
            raise ValueError(f"{COUNTS} has {counts}, {WORDS} {len(self.words)}")
        if self.characters.max() > IN_WORD_PADDING_ID:
            raise ValueError(f"{CHARACTERS} has an id above {IN_WORD_PADDING_ID}")
        if not self.ids.are_below(len(self.words)):
            raise ValueError(f"a token id is out of range for {plural(len(self.words), 'word')}")
        is_complete = self.offsets[0] == 0 and self.offsets[-1] == len(self.ids)
        if not is_complete or (np.diff(self.offsets) < len((BEGIN_ID, END_ID))).any():
            raise ValueError(f"{OFFSETS} does not cover the tokens")
        _ = self.vocabulary

    @property
    def characters(self) -> NDArray[np.uint16]:
        """The character rows of the distinct words, of `tables.INDEXER`."""
        rows = _mapped(self.root / CHARACTERS, CHARACTER)
        return rows.reshape(len(self.words), INDEXER.max_characters)

    @property
    def counts(self) -> NDArray[np.int64]:
        """The count of each distinct word in the training part."""
        return np.fromfile(self.root / COUNTS, COUNT)

    @cached_property
    def vocabulary(self) -> Counter[str]:
        """The count of each word of the vocabulary in the training part.

        For the vocabulary of a file, see `vocabulary_file.as_counts`: it keeps its order, and
        includes words that are not in this text.
        """
        words = read_vocabulary_file(self.root / VOCABULARY)
        if self.manifest.settings.get("vocabulary") is not None:
            return as_counts(words)
        counts = dict(zip(self.words, self.counts.tolist(), strict=True))
        return Counter({word: counts[word] for word in words})


def _mapped(file: Path, kind: np.dtype[Any]) -> NDArray[Any]:
    """Map a file that is not empty; indexing a plain array is faster than a `memmap`."""
    return np.asarray(np.memmap(file, kind, mode="r"))
