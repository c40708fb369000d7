"""Assemble tokenized blocks into a corpus: number the words, and split off held-out sentences."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_framework.console import plural
from elmo_framework.corpus.manifest import Entry
from elmo_framework.corpus.parts import PARTS, Part, PartWriter
from elmo_framework.corpus.tables import WordTable
from elmo_framework.corpus.tokenize import TokenizedBlock, load_hashes
from elmo_framework.corpus.vocabulary_file import SPECIAL_WORDS
from elmo_framework.errors import DataError

_NUM_HASHES = 2**64


@dataclass(frozen=True)
class SplitOptions:
    """Options of the split and the vocabulary.

    Attributes:
        held_out: see `hash_limit`.
        vocabulary: of the softmax, without the three special words; by default, the words of the
            training part are counted.
        min_count: minimum count of a counted word.
        max_size: maximum number of counted words.
    """

    held_out: float
    vocabulary: list[str] | None
    min_count: int
    max_size: int | None

    def vocabulary_of(self, table: WordTable) -> list[str]:
        """Return the vocabulary of the softmax, without the special words."""
        if self.vocabulary is not None:
            return self.vocabulary
        return table.frequent(min_count=self.min_count, max_size=self.max_size)


def assemble(
    paths: Sequence[Path], options: SplitOptions, root: Path
) -> tuple[list[Entry], dict[str, Any]]:
    """Write a corpus from tokenized blocks; memory has the distinct words and one block at a time.

    Args:
        paths: the files of the blocks, in the order of the text.
        options: of the split and the vocabulary.
        root: the folder of the corpus, empty.

    Returns:
        The entries of the files, and the counts for the manifest.

    Raises:
        DataError: there are no sentences to train on.
    """
    limit = hash_limit(map(load_hashes, paths), options.held_out)
    word_counts, num_blank_lines = _count(_split(paths, limit))
    if not any(word_counts.values()):
        raise DataError("no sentences to train on: the text has no words, or all are held out")
    table = WordTable.of(word_counts)
    vocabulary = options.vocabulary_of(table)
    entries = table.write(root, vocabulary)
    in_vocabulary = frozenset([*vocabulary, *SPECIAL_WORDS])
    is_known = np.array([word in in_vocabulary for word in table.words])
    parts, part_entries = _write_parts(_split(paths, limit), table, is_known, root)
    counts = {
        "parts": parts,
        "distinct_words": len(table.words),
        "vocabulary": len(in_vocabulary),
        "blank_lines": num_blank_lines,
        **table.statistics(),
    }
    return [*entries, *part_entries], counts


def hash_limit(hashes: Iterable[NDArray[np.uint64]], held_out: float) -> int:
    """Return the hash below which sentences are held out.

    Equal sentences have the same hash, so that they stay together in any order of the text.

    Args:
        hashes: of all sentences, in parts.
        held_out: a ratio of the distinct sentences if below 1, otherwise the maximum number of
            held-out sentences.

    Raises:
        DataError: there are too few sentences.
    """
    if held_out < 1:
        return int(held_out * _NUM_HASHES)
    number, total = int(held_out), 0
    lowest = np.zeros(0, np.uint64)
    for part in hashes:
        total += len(part)
        lowest = np.sort(np.concatenate([lowest, part]))[: number + 1]
    if len(lowest) <= number:
        raise DataError(
            f"cannot hold out {plural(number, 'sentence')} of {total:,}: pass a smaller number to "
            "--held-out, so that some are left to train on"
        )
    return int(lowest[number])


@dataclass(frozen=True)
class _SplitBlock:
    """A block of sentences, and whether each is held out."""

    block: TokenizedBlock
    is_held_out: NDArray[np.bool_]

    def ids(self, *, held_out: bool) -> NDArray[np.int32]:
        """Return the words of one part."""
        is_inside = np.equal(self.is_held_out, held_out)
        return np.compress(np.repeat(is_inside, self.block.lengths), self.block.ids)

    def lengths(self, *, held_out: bool) -> NDArray[np.int32]:
        """Return the lengths of the sentences of one part."""
        return np.compress(np.equal(self.is_held_out, held_out), self.block.lengths)


def _split(paths: Iterable[Path], limit: int) -> Iterator[_SplitBlock]:
    for block in map(TokenizedBlock.load, paths):
        yield _SplitBlock(block, block.hashes < np.uint64(limit))


def _count(blocks: Iterable[_SplitBlock]) -> tuple[dict[str, int], int]:
    """Count all words in the training part, and the blank lines."""
    word_counts, num_blank_lines = defaultdict[str, int](int), 0
    for split in blocks:
        words = split.block.words
        counts = np.bincount(split.ids(held_out=False), minlength=len(words))
        for word, count in zip(words, counts.tolist(), strict=True):
            word_counts[word] += count
        num_blank_lines += split.block.num_blank_lines
    return word_counts, num_blank_lines


def _write_parts(
    blocks: Iterable[_SplitBlock], table: WordTable, is_known: NDArray[np.bool_], root: Path
) -> tuple[dict[Part, dict[str, int]], list[Entry]]:
    """Write the sentences; return the counts of each part, and the entries of the files."""
    numbers = {word: number for number, word in enumerate(table.words)}
    num_unknown = dict.fromkeys(PARTS, 0)
    with ExitStack() as stack:
        writers = {part: stack.enter_context(PartWriter(root, part)) for part in PARTS}
        for split in blocks:
            global_ids = np.fromiter(map(numbers.__getitem__, split.block.words), np.int32)
            for part, writer in writers.items():
                is_held_out = part == "held_out"
                ids = global_ids[split.ids(held_out=is_held_out)]
                num_unknown[part] += len(ids) - int(is_known[ids].sum())
                writer.add(ids, split.lengths(held_out=is_held_out))
    counts = {
        part: {
            "sentences": writer.num_sentences,
            "words": writer.num_words,
            "unknown_words": num_unknown[part],
        }
        for part, writer in writers.items()
    }
    return counts, [entry for writer in writers.values() for entry in writer.entries()]
