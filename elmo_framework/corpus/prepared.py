"""A part of a prepared corpus, mapped into memory: its pages are read when they are needed."""

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
from elmo_framework.corpus.manifest import Manifest
from elmo_framework.corpus.parts import BEGIN_ID, END_ID, OFFSET, OFFSETS, PARTS, TOKEN
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
    """Tokens in several files, as if they were one array.

    Args:
        files: of the tokens, in their order; none is empty.
    """

    def __init__(self, files: Sequence[Path]) -> None:
        self._shards = [_mapped(file, TOKEN) for file in files]
        self._starts = np.cumsum([0, *map(len, self._shards)])

    def __len__(self) -> int:
        return int(self._starts[-1])

    def are_below(self, limit: int) -> bool:
        """Tell whether all tokens are from 0 to below a limit."""
        return all(int(shard.min()) >= 0 and int(shard.max()) < limit for shard in self._shards)

    def __getitem__(self, places: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the tokens at some places."""
        if len(self._shards) == 1:
            alone: NDArray[np.int32] = self._shards[0][places]
            return alone
        found = np.empty(places.shape, TOKEN)
        owners = np.searchsorted(self._starts, places, side="right") - 1
        for owner in np.unique(owners):
            is_inside = owners == owner
            found[is_inside] = self._shards[owner][places[is_inside] - self._starts[owner]]
        return found


@final
@dataclass(frozen=True)
class PreparedPart:
    """The training part of a corpus, or the held-out one.

    Attributes:
        manifest: of the corpus.
        root: the folder of the corpus.
        words: the distinct words; the first two are the boundaries of a sentence.
        ids: the sentences one after the other, each between its boundaries.
        offsets: where each begins in `ids`, and at the end where the last one ends.
    """

    manifest: Manifest
    root: Path
    words: tuple[str, ...]
    ids: ConcatenatedShards
    offsets: NDArray[np.int64]

    @classmethod
    def load(cls, path: Path) -> PreparedPart:
        """Map a part, once its files are found to be what was written.

        Args:
            path: the folder of the part, in that of the corpus.

        Raises:
            DataError: there is none, or a file is damaged.
        """
        root, part = path.parent, path.name
        if part not in PARTS:
            raise DataError(
                f"name a part of a corpus that `elmo prepare` made; {allowed(part, PARTS)}",
                path=path,
            )
        manifest = Manifest.read(root)
        own = manifest.entries(f"{part}/")
        if not own:
            raise DataError("this part of the corpus has no sentence", path=path)
        manifest.verify(root, [entry for entry in manifest.files if "/" not in entry.name])
        manifest.verify(root, own)
        shards = sorted(root / entry.name for entry in own if not entry.name.endswith(OFFSETS))
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
        """Refuse numbers that no `elmo prepare` has written, though their digests are right.

        Raises:
            ValueError: there are some.
            KeyError: a word of the vocabulary is not in the table.
        """
        if len(self.counts) != len(self.words):
            counts = plural(len(self.counts), "word")
            raise ValueError(f"{COUNTS} has {counts}, {WORDS} {len(self.words)}")
        if self.characters.max() > IN_WORD_PADDING_ID:
            raise ValueError(f"{CHARACTERS} has an id above {IN_WORD_PADDING_ID}")
        if not self.ids.are_below(len(self.words)):
            raise ValueError(f"a token is none of the {plural(len(self.words), 'word')}")
        is_sound = self.offsets[0] == 0 and self.offsets[-1] == len(self.ids)
        if not is_sound or (np.diff(self.offsets) < len((BEGIN_ID, END_ID))).any():
            raise ValueError(f"{OFFSETS} does not cover the tokens")
        _ = self.vocabulary

    @property
    def characters(self) -> NDArray[np.uint16]:
        """The rows of the distinct words, as `tables.INDEXER` makes them."""
        rows = _mapped(self.root / CHARACTERS, CHARACTER)
        return rows.reshape(len(self.words), INDEXER.max_characters)

    @property
    def counts(self) -> NDArray[np.int64]:
        """How often each of the distinct words comes in the training part."""
        return np.fromfile(self.root / COUNTS, COUNT)

    @cached_property
    def vocabulary(self) -> Counter[str]:
        """How often each word of the vocabulary comes in the training part.

        Of a vocabulary that was given, see `vocabulary_file.as_counts`: it keeps its order, and the
        words that are not in this text.
        """
        words = read_vocabulary_file(self.root / VOCABULARY)
        if self.manifest.settings.get("vocabulary") is not None:
            return as_counts(words)
        counts = dict(zip(self.words, self.counts.tolist(), strict=True))
        return Counter({word: counts[word] for word in words})


def _mapped(file: Path, kind: np.dtype[Any]) -> NDArray[Any]:
    """Map a file that is not empty; a plain array on it is looked into faster than a `memmap`."""
    return np.asarray(np.memmap(file, kind, mode="r"))
