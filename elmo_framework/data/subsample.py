"""Training on less: a seeded share of the examples."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray


class IndexedExamples(ABC):
    """Examples that are read by index, so that a few are read without the others."""

    @property
    @abstractmethod
    def num_sentences(self) -> int:
        """The number of examples; each is a sentence."""

    @abstractmethod
    def part(self, numbers: NDArray[np.int64]) -> Iterable[Any]:
        """Return the examples with some indices."""


def subsample(
    read: Callable[[], Iterable[Any]],
    group: Callable[[Any], object],
    *,
    fraction: float,
    seed: int,
) -> Iterable[Any]:
    """Return a share of the groups of examples: at least one.

    With the same seed a smaller share is a part of a larger one.

    Args:
        read: reads all examples; it is called twice where they cannot be had by their numbers.
        group: what examples that follow each other have in common (`Task.group`).
        fraction: of the groups.
        seed: of the choice.
    """
    examples = read()
    if isinstance(examples, IndexedExamples):
        return examples.part(np.array(sorted(_chosen(examples.num_sentences, fraction, seed))))
    num_groups = 1 + max((number for number, _ in _numbered(examples, group)), default=0)
    chosen = _chosen(num_groups, fraction, seed)
    return [example for number, example in _numbered(read(), group) if number in chosen]


def _chosen(num_groups: int, fraction: float, seed: int) -> set[int]:
    order = list(range(num_groups))
    random.Random(seed).shuffle(order)
    return set(order[: max(1, round(fraction * num_groups))])


def _numbered(examples: Iterable[Any], group: Callable[[Any], object]) -> Iterator[tuple[int, Any]]:
    """Yield each example with the number of its group."""
    number, last = -1, None
    for example in examples:
        held = group(example)
        number += held is not last
        last = held
        yield number, example
