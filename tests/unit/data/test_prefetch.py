"""Batches of a thread are those of the source, and so is the position after each."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest

from elmo_framework.data.data_loader import BatchSource, BucketDataLoader, Rank, SourceContext
from elmo_framework.data.prefetch import PrefetchedSource

NUM_EXAMPLES = 10


def source_of() -> BatchSource[Any]:
    context = SourceContext(
        collate=list, num_tokens=lambda _: 1, seed=3, is_training=True, rank=Rank()
    )
    return BucketDataLoader(batch_size=3).source(range(NUM_EXAMPLES), context)


def position(source: BatchSource[Any]) -> tuple[Any, ...]:
    state = source.num_batches, source.num_left, source.is_at_epoch_end, source.num_tokens
    return *state, source.state_dict()


def epochs(source: BatchSource[Any]) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Yield each batch of three epochs with the position after it."""
    for _ in range(3):
        for batch in source.batches():
            yield batch, position(source)


def test_batches_and_positions_are_those_of_the_source() -> None:
    assert list(epochs(PrefetchedSource(source_of()))) == list(epochs(source_of()))


def test_each_batch_is_prepared() -> None:
    prefetched = PrefetchedSource(source_of(), lambda batch: [-each for each in batch])
    assert list(prefetched.batches()) == [[-each for each in b] for b in source_of().batches()]


@pytest.mark.parametrize("num_taken", [0, 1, 3])
def test_an_epoch_continues_after_the_last_delivered_batch(num_taken: int) -> None:
    prefetched, expected = PrefetchedSource(source_of()), list(source_of().batches())
    first = prefetched.batches()
    assert list(islice(first, num_taken)) == expected[:num_taken]
    first.close()  # type: ignore[attr-defined]
    assert list(prefetched.batches()) == expected[num_taken:]


def test_a_position_is_restored() -> None:
    interrupted, expected = PrefetchedSource(source_of()), list(source_of().batches())
    taken = interrupted.batches()
    next(taken)
    resumed = PrefetchedSource(source_of())
    resumed.load_state_dict(interrupted.state_dict())
    assert list(resumed.batches()) == expected[1:]
    others = PrefetchedSource(source_of())
    others.load_state_of_others(interrupted.state_dict(), num_processes=2)
    assert list(others.batches()) == expected[2:]


def test_an_error_reaches_the_consumer() -> None:
    def fail(batch: Any) -> Any:
        raise ValueError("no batch")

    with pytest.raises(ValueError, match="no batch"):
        next(PrefetchedSource(source_of(), fail).batches())


def test_the_thread_ends_with_its_consumer() -> None:
    before = threading.active_count()
    batches = PrefetchedSource(source_of()).batches()
    next(batches)
    assert threading.active_count() == before + 1
    batches.close()  # type: ignore[attr-defined]
    assert threading.active_count() == before
