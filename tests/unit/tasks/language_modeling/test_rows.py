"""Rows against a loop that moves one row at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from elmo_framework.bilm.context_layers import Direction
from elmo_framework.tasks.language_modeling.corpus import TokenIdCorpus
from elmo_framework.tasks.language_modeling.rows import (
    SentenceOrder,
    SentenceStreams,
)

ENTROPY = [3, 1]


def corpus_of(num_sentences: int, longest: int) -> TokenIdCorpus:
    """Sentences of random lengths, the empty one among them."""
    lengths = np.random.default_rng(num_sentences).integers(0, longest + 1, num_sentences)
    offsets = np.concatenate([[0], np.cumsum(lengths + 2)])
    return TokenIdCorpus(("<S>", "</S>"), np.zeros(offsets[-1], np.int32), offsets)


def shuffled(num_sentences: int) -> Iterator[int]:
    """Pass after pass, each in an order of its own."""
    number = 0
    while True:
        order = np.random.default_rng([*ENTROPY, number]).permutation(num_sentences)
        yield from order.tolist()
        number += 1


def windows_one_by_one(
    corpus: TokenIdCorpus, stream: Iterator[int], num_rows: int, num_steps: int, step: int
) -> Iterator[list[tuple[int, int, int]]]:
    """Yield the segments of each window: where it begins there and in the corpus, its length."""
    unfinished = [(0, 0)] * num_rows
    while True:
        segments = []
        for row in range(num_rows):
            place, end = row * num_steps, (row + 1) * num_steps
            cursor, remaining = unfinished[row]
            while place < end:
                if not remaining:
                    sentence = next(stream, None)
                    if sentence is None:
                        break
                    first, after = corpus.offsets[sentence : sentence + 2].tolist()
                    cursor, remaining = (first if step > 0 else after - 1), after - first - 1
                length = min(remaining, end - place)
                segments.append((place, cursor, length))
                place, cursor, remaining = (
                    place + length,
                    cursor + step * length,
                    remaining - length,
                )
            unfinished[row] = cursor, remaining
        yield segments


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("is_shuffled", [True, False])
@pytest.mark.parametrize(
    ("num_sentences", "longest", "num_rows", "num_steps"),
    [(1, 0, 3, 4), (4, 3, 7, 5), (50, 30, 8, 6), (300, 60, 64, 20), (30, 5, 100, 20)],
)
def test_rows_equal_those_advanced_one_by_one(
    direction: Direction,
    is_shuffled: bool,
    num_sentences: int,
    longest: int,
    num_rows: int,
    num_steps: int,
) -> None:
    corpus = corpus_of(num_sentences, longest)
    stream = SentenceOrder(num_sentences)
    sentences = iter(range(num_sentences))
    if is_shuffled:
        stream, sentences = SentenceOrder(num_sentences, ENTROPY), shuffled(num_sentences)
    rows = SentenceStreams(
        corpus, stream, num_rows=num_rows, num_steps=num_steps, direction=direction
    )
    step = 1 if direction == "forward" else -1
    expected = windows_one_by_one(corpus, sentences, num_rows, num_steps, step)
    for _ in range(40):
        found = rows.window()
        assert sorted(zip(*(held.tolist() for held in found), strict=True)) == next(expected)


@pytest.mark.parametrize("num_taken", [0, 3, 5, 12])
def test_shuffled_stream_continues_from_its_position(num_taken: int) -> None:
    stream = SentenceOrder(5, ENTROPY)
    for _ in range(num_taken):
        stream.ahead(11)
        stream.skip(1)
    state: dict[str, Any] = stream.state_dict()
    assert state == {"pass": num_taken // 5, "index": num_taken % 5}
    resumed = SentenceOrder(5, ENTROPY)
    resumed.load_state_dict(state)
    assert resumed.ahead(20).tolist() == stream.ahead(20).tolist()


def test_next_pass_starts_where_the_last_ends() -> None:
    ended, begun = SentenceOrder(5, ENTROPY), SentenceOrder(5, ENTROPY)
    ended.load_state_dict({"pass": 0, "index": 5})
    begun.load_state_dict({"pass": 1, "index": 0})
    assert ended.ahead(9).tolist() == begun.ahead(9).tolist()
    assert ended.state_dict() == begun.state_dict()
