"""Which examples a share of the training data holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from elmo_framework.data.subsample import IndexedExamples, split_by_unit, subsample
from elmo_framework.metrics.srl import Proposition
from elmo_framework.tasks.srl.example import (
    SrlExample,
    examples_of,
)
from elmo_framework.tasks.srl.task import SrlTask
from tests.unit.training.toy import ToyTask

SEEDS = range(20)


def sentence(words: Sequence[str], *predicates: int) -> list[SrlExample]:
    """What a reader makes of a sentence: an example a predicate."""
    asked = [Proposition(place, ("O",) * len(words)) for place in predicates]
    return list(examples_of(SrlExample(tuple(words), tuple(asked)), skip_empty=False))


TWICE = ["it", "seems", "to", "work"]
SENTENCES = [
    sentence(TWICE, 1, 3),
    sentence(TWICE, 1, 3),
    sentence(["go"], 0),
    sentence(["she", "came", "and", "went"], 1, 3),
]


def read_sentences() -> Iterable[SrlExample]:
    for examples in SENTENCES:
        yield from examples


@pytest.mark.parametrize("fraction", [0.25, 0.5, 0.75])
def test_all_predicates_of_a_sentence_are_in_a_share_or_none(fraction: float) -> None:
    shares = set()
    for seed in SEEDS:
        held = subsample(read_sentences, SrlTask().group, fraction=fraction, seed=seed)
        found = {id(example) for example in held}
        of_sentences = [sum(id(example) in found for example in examples) for examples in SENTENCES]
        assert all(
            number in (0, len(examples))
            for number, examples in zip(of_sentences, SENTENCES, strict=True)
        )
        assert sum(number > 0 for number in of_sentences) == round(fraction * len(SENTENCES))
        shares.add(tuple(of_sentences))
    # The first two have the same words, and are sentences of their own all the same.
    assert {number > 0 for number, *_ in shares} == {True, False}
    assert any((first > 0) != (second > 0) for first, second, *_ in shares)


class Numbered(IndexedExamples):
    """Examples that can be had by their numbers."""

    num_sentences = 200

    def part(self, numbers: NDArray[np.int64]) -> Iterable[float]:
        return [float(number) for number in numbers]


def read_one_by_one() -> Iterable[float]:
    return (float(number) for number in range(Numbered.num_sentences))


BOTH = pytest.mark.parametrize("read", [read_one_by_one, Numbered])


@BOTH
@pytest.mark.parametrize("seed", SEEDS)
def test_smaller_sample_is_an_ordered_subset(read: Any, seed: int) -> None:
    small, large = (
        list(subsample(read, ToyTask().group, fraction=fraction, seed=seed))
        for fraction in (0.1, 0.5)
    )
    assert (len(small), len(large)) == (20, 100)
    assert set(small) < set(large)
    assert large == sorted(large)


@BOTH
def test_another_seed_chooses_others(read: Any) -> None:
    chosen = Counter(
        example
        for seed in SEEDS
        for example in subsample(read, ToyTask().group, fraction=0.5, seed=seed)
    )
    assert len(chosen) == Numbered.num_sentences
    assert max(chosen.values()) < len(SEEDS)


@BOTH
def test_a_tiny_share_holds_one_group(read: Any) -> None:
    assert len(list(subsample(read, ToyTask().group, fraction=1e-6, seed=1))) == 1


WORDS = [f"word{number}" for number in range(2000)]


def part(start: float, end: float) -> list[str]:
    return list(split_by_unit(WORDS, str, start=start, end=end))


def test_held_out_part_is_fixed_by_sha256() -> None:
    expected = [word for word in WORDS if int(sha256(word.encode()).hexdigest(), 16) / 2**256 < 0.1]
    assert part(0, 0.1) == expected
    assert expected[:3] == ["word21", "word77", "word79"]
    assert 150 < len(expected) < 250


def test_parts_are_all_examples_and_have_none_in_common() -> None:
    assert sorted([*part(0, 0.1), *part(0.1, 0.7), *part(0.7, 1)]) == sorted(WORDS)
