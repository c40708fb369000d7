"""The order of examples: fixed by the seed, kept over a resume, shared by processes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from elmo_framework.data.data_loader import BatchSource, BucketDataLoader, Rank, SourceContext
from elmo_framework.errors import DataError

LENGTHS = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2]


def source(
    *, is_training: bool = True, rank: Rank | None = None, seed: int = 1, **options: Any
) -> BatchSource[list[tuple[int, int]]]:
    context = SourceContext(
        collate=list,
        num_tokens=lambda example: example[1],
        seed=seed,
        is_training=is_training,
        rank=rank or Rank(),
    )
    return BucketDataLoader(**options).source(enumerate(LENGTHS), context)


def numbers(batches: Sequence[list[tuple[int, int]]]) -> list[list[int]]:
    return [[number for number, _ in batch] for batch in batches]


def epoch(held: BatchSource[list[tuple[int, int]]]) -> list[list[int]]:
    return numbers(list(held.batches()))


OPTIONS = [{"batch_size": 4}, {"batch_size": 3, "bucketing": True}, {"max_tokens": 12}]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("is_training", [True, False])
def test_each_example_comes_once_an_epoch(options: dict[str, Any], is_training: bool) -> None:
    held = source(is_training=is_training, **options)
    for _ in range(3):
        assert sorted(number for batch in epoch(held) for number in batch) == list(range(17))


def test_evaluation_keeps_the_order() -> None:
    for shuffle in (None, True, False):
        held = source(is_training=False, batch_size=6, shuffle=shuffle)
        assert epoch(held)[0] == epoch(held)[0] == [0, 1, 2, 3, 4, 5]


def test_training_changes_the_order_from_epoch_to_epoch() -> None:
    held = source(batch_size=6)
    first, second = epoch(held), epoch(held)
    assert first != second


def test_the_seed_fixes_the_order() -> None:
    assert epoch(source(seed=5)) == epoch(source(seed=5))
    assert epoch(source(seed=5)) != epoch(source(seed=6))


def test_buckets_hold_examples_of_similar_length() -> None:
    spread = [
        max(length for _, length in batch) - min(length for _, length in batch)
        for batch in source(batch_size=4, bucketing=True).batches()
    ]
    assert sum(spread) <= 9


def test_a_batch_size_replaces_that_of_a_loader() -> None:
    loader = BucketDataLoader(batch_size=4, max_tokens=5, shuffle=False, bucketing=True)
    resized = loader.with_batch_size(9)
    assert (resized.batch_size, resized.max_tokens) == (9, None)
    assert (resized.shuffle, resized.bucketing) == (False, True)
    assert (loader.batch_size, loader.max_tokens) == (4, 5)


def test_only_single_examples_exceed_max_tokens() -> None:
    for batch in source(max_tokens=8).batches():
        padded = len(batch) * max(length for _, length in batch)
        assert padded <= 8 or len(batch) == 1


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("delivered", range(9))
def test_a_position_is_gone_on_from(options: dict[str, Any], delivered: int) -> None:
    whole = source(**options)
    expected = [*epoch(whole), *epoch(whole), *epoch(whole)]
    first, second = source(**options), source(**options)
    seen = []
    while len(seen) < delivered:
        for batch in first.batches():
            seen.append(numbers([batch])[0])
            if len(seen) == delivered:
                break
    second.load_state_dict(first.state_dict())
    while len(seen) < len(expected):
        seen += epoch(second)
    assert seen == expected


def test_processes_get_equally_many_batches_and_all_examples() -> None:
    shares = [source(batch_size=4, rank=Rank(rank, 2)) for rank in range(2)]
    parts = [epoch(held) for held in shares]
    assert len(parts[0]) == len(parts[1]) == 3
    assert {number for part in parts for batch in part for number in batch} == set(range(17))


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("world_size", [2, 3, 20])
def test_evaluation_gives_each_example_to_one_process(
    options: dict[str, Any], world_size: int
) -> None:
    shares = [Rank(rank, world_size) for rank in range(world_size)]
    parts = [epoch(source(is_training=False, rank=rank, **options)) for rank in shares]
    assert sorted(n for part in parts for batch in part for n in batch) == list(range(17))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_more_processes_than_batches_repeat_them() -> None:
    sources = [source(rank=Rank(rank, 4), batch_size=len(LENGTHS)) for rank in range(4)]

    assert [held.num_batches for held in sources] == [1] * 4
    assert all(sorted(epoch(held)[0]) == list(range(len(LENGTHS))) for held in sources)


def test_no_example_is_an_error() -> None:
    context = SourceContext(collate=list, num_tokens=len, seed=0, is_training=True)
    with pytest.raises(DataError, match="the data has no examples; a batch needs at least one"):
        BucketDataLoader().source([], context)


def test_resume_with_other_processes_skips_delivered_examples() -> None:
    first = source(batch_size=2, rank=Rank(0, 2))
    second = source(batch_size=2, rank=Rank(1, 2))
    done = [next(held.batches()) for held in (first, second)]
    alone = source(batch_size=2)
    alone.load_state_of_others(first.state_dict(), num_processes=2)
    assert sorted(n for batch in [*numbers(done), *epoch(alone)] for n in batch) == list(range(17))


@pytest.mark.parametrize("num_before", [1, 2, 3, 4])
@pytest.mark.parametrize("num_now", [1, 2, 3, 4])
def test_resume_with_other_processes_keeps_the_epoch_end(num_before: int, num_now: int) -> None:
    before = source(batch_size=2, rank=Rank(0, num_before))
    batches = before.batches()
    for _ in range(before.num_batches):
        next(batches)
        now = source(batch_size=2, rank=Rank(num_now - 1, num_now))
        now.load_state_of_others(before.state_dict(), num_before)
        assert now.is_at_epoch_end == before.is_at_epoch_end


def balanced_epochs(num_epochs: int, *, rank: Rank | None = None) -> list[list[list[int]]]:
    """Epochs of 17 examples, of which those above 14 have the label `rare`."""
    context = SourceContext(
        collate=list,
        num_tokens=lambda example: example[1],
        seed=1,
        is_training=True,
        rank=rank or Rank(),
        label=lambda example: "rare" if example[0] > 14 else "frequent",
    )
    loader = BucketDataLoader(batch_size=4, balanced=True)
    held = loader.source(enumerate(LENGTHS), context)
    return [epoch(held) for _ in range(num_epochs)]


def test_balanced_batches_have_all_labels_equally_often() -> None:
    first, second = ([n for batch in each for n in batch] for each in balanced_epochs(2))

    assert len(first) == len(LENGTHS)
    assert sum(number > 14 for number in first) in (8, 9)
    assert {first.count(number) for number in (15, 16)} <= {4, 5}
    assert max(first.count(number) for number in range(15)) == 1
    assert first != second


def test_balanced_order_depends_on_seed_and_epoch_only() -> None:
    context = SourceContext(list, lambda _: 1, 3, True, label=lambda each: str(each > 8))
    loader = BucketDataLoader(batch_size=4, balanced=True)
    whole = loader.source(range(10), context)
    [*whole.batches()]
    rest = whole.batches()
    next(rest)
    resumed = loader.source(range(10), context)
    resumed.load_state_dict(whole.state_dict())

    assert [*resumed.batches()] == [*rest]


def test_scoring_is_never_balanced() -> None:
    context = SourceContext(list, lambda _: 1, 3, False, label=lambda each: str(each > 8))
    held = BucketDataLoader(batch_size=4, balanced=True).source(range(10), context)

    assert [n for batch in held.batches() for n in batch] == list(range(10))


def test_balancing_needs_labels_and_random_order() -> None:
    with pytest.raises(DataError, match="has no label"):
        source(balanced=True)
    with pytest.raises(ValueError, match="shuffle"):
        BucketDataLoader(balanced=True, shuffle=False)
