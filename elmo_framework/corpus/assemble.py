"""From drafts to a corpus: one numbering of all words, and two parts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_framework.corpus.held_out import hash_limit
from elmo_framework.corpus.manifest import Entry
from elmo_framework.corpus.parts import PARTS, Part, PartWriter
from elmo_framework.corpus.tables import WordTable
from elmo_framework.corpus.tokenize import TokenizedBlock, load_hashes
from elmo_framework.corpus.vocabulary_file import SPECIAL_WORDS
from elmo_framework.errors import DataError


@dataclass(frozen=True)
class SplitOptions:
    """What is taken of the text.

    Attributes:
        held_out: see `held_out.hash_limit`.
        vocabulary: the words that the softmax knows besides the three special ones; those of
            the training part unless given.
        min_count: how often a word of the training part must be there.
        max_size: how many of those are kept.
    """

    held_out: float
    vocabulary: list[str] | None
    min_count: int
    max_size: int | None

    def vocabulary_of(self, table: WordTable) -> list[str]:
        """Return the words that the softmax knows besides the special ones."""
        if self.vocabulary is not None:
            return self.vocabulary
        return table.frequent(min_count=self.min_count, max_size=self.max_size)


def assemble(
    drafts: Sequence[Path], selection: SplitOptions, root: Path
) -> tuple[list[Entry], dict[str, Any]]:
    """Make a corpus of drafts; holds the distinct words, and one draft at a time.

    Args:
        drafts: the files, in the order of the text.
        selection: what is taken of them.
        root: the folder of the corpus, empty.

    Returns:
        What was written, and what was counted.

    Raises:
        DataError: there is no sentence to train on.
    """
    limit = hash_limit(map(load_hashes, drafts), selection.held_out)
    counted, num_blank_lines = _counted(_divided(drafts, limit))
    if not any(counted.values()):
        raise DataError(
            "there is no sentence to train on: the text has no words, or all are held out"
        )
    table = WordTable.of(counted)
    vocabulary = selection.vocabulary_of(table)
    entries = table.write(root, vocabulary)
    known = frozenset([*vocabulary, *SPECIAL_WORDS])
    is_known = np.array([word in known for word in table.words])
    parts, part_entries = _write_parts(_divided(drafts, limit), table, is_known, root)
    counts = {
        "parts": parts,
        "distinct_words": len(table.words),
        "vocabulary": len(known),
        "blank_lines": num_blank_lines,
        **table.figures(),
    }
    return [*entries, *part_entries], counts


@dataclass(frozen=True)
class _Divided:
    """A draft with what is held out of it.

    Attributes:
        draft: the sentences.
        is_held_out: of each sentence.
    """

    draft: TokenizedBlock
    is_held_out: NDArray[np.bool_]

    def ids(self, *, held_out: bool) -> NDArray[np.int32]:
        """Return the words of one part."""
        is_inside = np.equal(self.is_held_out, held_out)
        return np.compress(np.repeat(is_inside, self.draft.lengths), self.draft.ids)

    def lengths(self, *, held_out: bool) -> NDArray[np.int32]:
        """Return the lengths of the sentences of one part."""
        return np.compress(np.equal(self.is_held_out, held_out), self.draft.lengths)


def _divided(drafts: Iterable[Path], limit: int) -> Iterator[_Divided]:
    for draft in map(TokenizedBlock.load, drafts):
        yield _Divided(draft, draft.hashes < np.uint64(limit))


def _counted(drafts: Iterable[_Divided]) -> tuple[dict[str, int], int]:
    """Count all words in the training part, and the blank lines."""
    counted, num_blank_lines = defaultdict[str, int](int), 0
    for divided in drafts:
        words = divided.draft.words
        counts = np.bincount(divided.ids(held_out=False), minlength=len(words))
        for word, count in zip(words, counts.tolist(), strict=True):
            counted[word] += count
        num_blank_lines += divided.draft.num_blank_lines
    return counted, num_blank_lines


def _write_parts(
    drafts: Iterable[_Divided], table: WordTable, is_known: NDArray[np.bool_], root: Path
) -> tuple[dict[Part, dict[str, int]], list[Entry]]:
    """Write the sentences; return what each part holds, and the files."""
    numbers = {word: number for number, word in enumerate(table.words)}
    num_unknown = dict.fromkeys(PARTS, 0)
    with ExitStack() as opened:
        writers = {part: opened.enter_context(PartWriter(root, part)) for part in PARTS}
        for divided in drafts:
            own = np.fromiter(map(numbers.__getitem__, divided.draft.words), np.int32)
            for part, writer in writers.items():
                is_held_out = part == "held_out"
                ids = own[divided.ids(held_out=is_held_out)]
                num_unknown[part] += len(ids) - int(is_known[ids].sum())
                writer.add(ids, divided.lengths(held_out=is_held_out))
    figures = {
        part: {
            "sentences": writer.num_sentences,
            "words": writer.num_words,
            "unknown_words": num_unknown[part],
        }
        for part, writer in writers.items()
    }
    return figures, [entry for writer in writers.values() for entry in writer.entries()]
