"""Assemble tokenized blocks into a corpus: number the words, and split off held-out sentences."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_framework import console
from elmo_framework.console import plural
from elmo_framework.corpus.manifest import SPLITS, CorpusSplit, Entry, SplitWriter
from elmo_framework.corpus.tables import WordTable
from elmo_framework.corpus.tokenize import TokenizedBlock, load_hashes
from elmo_framework.corpus.vocabulary_file import SPECIAL_WORDS
from elmo_framework.errors import DataError

_NUM_HASHES = 2**64


def assemble(
    paths: Sequence[Path],
    root: Path,
    *,
    held_out: float,
    vocabulary: list[str] | None = None,
    min_count: int = 1,
    max_size: int | None = None,
    num_pieces: int | None = None,
) -> tuple[list[Entry], dict[str, Any]]:
    """Write a corpus from tokenized blocks; memory has the distinct words and one block at a time.

    Args:
        paths: the files of the blocks, in the order of the text.
        root: the folder of the corpus, empty.
        held_out: see `hash_limit`.
        vocabulary: of the softmax, without the three special words; by default, the words of the
            training part are counted.
        min_count: minimum count of a counted word.
        max_size: maximum number of counted words.
        num_pieces: the number of byte-level pieces to learn from the training part, if any.

    Returns:
        The entries of the files, and the counts for the manifest.

    Raises:
        DataError: all sentences are held out, or the text is empty.
    """
    limit = hash_limit(map(load_hashes, paths), held_out)
    word_counts, num_blank_lines = _count(_read(paths, limit))
    if not any(word_counts.values()):
        raise DataError("no sentences to train on: the text has no words, or all are held out")
    table = WordTable.of(word_counts)
    if vocabulary is None:
        vocabulary = table.frequent(min_count=min_count, max_size=max_size)
    entries, pieces = table.write(root, vocabulary), dict[str, Any]()
    if num_pieces is not None:
        console.info("learning the pieces of words ...")
        entry, pieces["pieces"] = table.write_pieces(root, num_pieces)
        entries.append(entry)
    in_vocabulary = frozenset([*vocabulary, *SPECIAL_WORDS])
    is_known = np.array([word in in_vocabulary for word in table.words])
    splits, split_entries = _write_splits(_read(paths, limit), table, is_known, root)
    counts = {
        "parts": splits,
        "distinct_words": len(table.words),
        "vocabulary": len(in_vocabulary),
        "blank_lines": num_blank_lines,
        **table.statistics(),
        **pieces,
    }
    return [*entries, *split_entries], counts


def hash_limit(hashes: Iterable[NDArray[np.uint64]], held_out: float) -> int:
    """Return the hash below which sentences are held out.

    Equal sentences have the same hash, so that they stay together in any order of the text.

    Args:
        hashes: of all sentences, in parts.
        held_out: a ratio of the distinct sentences if below 1, otherwise the maximum number of
            held-out sentences; they end before the first one whose copies do not fit.

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


def _read(paths: Iterable[Path], limit: int) -> Iterator[tuple[TokenizedBlock, NDArray[np.bool_]]]:
    """Yield each block, and which of its sentences are held out."""
    for block in map(TokenizedBlock.load, paths):
        yield block, block.hashes < np.uint64(limit)


def _count(
    blocks: Iterable[tuple[TokenizedBlock, NDArray[np.bool_]]],
) -> tuple[dict[str, int], int]:
    """Count all words in the training part, and the blank lines."""
    word_counts, num_blank_lines = defaultdict[str, int](int), 0
    for block, is_held_out in blocks:
        ids, _ = block.select(~is_held_out)
        counts = np.bincount(ids, minlength=len(block.words))
        for word, count in zip(block.words, counts.tolist(), strict=True):
            word_counts[word] += count
        num_blank_lines += block.num_blank_lines
    return word_counts, num_blank_lines


def _write_splits(
    blocks: Iterable[tuple[TokenizedBlock, NDArray[np.bool_]]],
    table: WordTable,
    is_known: NDArray[np.bool_],
    root: Path,
) -> tuple[dict[CorpusSplit, dict[str, int]], list[Entry]]:
    """Write the sentences; return the counts of each split, and the entries of the files."""
    numbers = {word: number for number, word in enumerate(table.words)}
    num_unknown = dict.fromkeys(SPLITS, 0)
    with ExitStack() as stack:
        writers = {split: stack.enter_context(SplitWriter(root, split)) for split in SPLITS}
        for block, is_held_out in blocks:
            global_ids = np.fromiter(map(numbers.__getitem__, block.words), np.int32)
            for split, writer in writers.items():
                local_ids, lengths = block.select(np.equal(is_held_out, split == "held_out"))
                ids = global_ids[local_ids]
                num_unknown[split] += len(ids) - int(is_known[ids].sum())
                writer.add(ids, lengths)
    counts = {
        split: {
            "sentences": writer.num_sentences,
            "words": writer.num_words,
            "unknown_words": num_unknown[split],
        }
        for split, writer in writers.items()
    }
    return counts, [entry for writer in writers.values() for entry in writer.entries()]
