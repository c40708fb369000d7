"""Draw a seeded fraction of the examples, and hold a fixed part of them out."""

from __future__ import annotations

import hashlib
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

ExampleT = TypeVar("ExampleT")


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
    """Return a fraction of the groups of examples: at least one group.

    With the same seed, a smaller fraction is a subset of a larger one.

    Args:
        read: reads all examples; it is called twice unless they are `IndexedExamples`.
        group: an object identical for consecutive examples of a group (`Task.group`).
        fraction: of the groups.
        seed: of the draw.
    """
    examples = read()
    if isinstance(examples, IndexedExamples):
        return examples.part(np.array(sorted(_drawn(examples.num_sentences, fraction, seed))))
    num_groups = 1 + max((number for number, _ in _numbered(examples, group)), default=0)
    drawn = _drawn(num_groups, fraction, seed)
    return [example for number, example in _numbered(read(), group) if number in drawn]


def split_by_unit(
    examples: Iterable[ExampleT],
    sampling_unit: Callable[[ExampleT], str],
    *,
    start: float,
    end: float,
) -> Iterator[ExampleT]:
    """Yield the examples of one part of the data.

    The SHA-256 of the unit of an example is a number from 0 to 1; the part has those from
    `start` to below `end`. So the parts do not depend on a seed, the machine, or the other
    examples.

    Args:
        examples: read once.
        sampling_unit: returns the same text for all examples of a unit (`HeadTask.sampling_unit`).
        start: of the part.
        end: of the part; its size is about `end - start` of all units.
    """
    for example in examples:
        digest = hashlib.sha256(sampling_unit(example).encode("utf-8", "surrogatepass")).digest()
        if start <= int.from_bytes(digest[:6], "big") / 2**48 < end:
            yield example


def _drawn(num_groups: int, fraction: float, seed: int) -> set[int]:
    order = list(range(num_groups))
    random.Random(seed).shuffle(order)
    return set(order[: max(1, round(fraction * num_groups))])


def _numbered(examples: Iterable[Any], group: Callable[[Any], object]) -> Iterator[tuple[int, Any]]:
    """Yield each example with the number of its group."""
    number, last = -1, None
    for example in examples:
        current = group(example)
        number += current is not last
        last = current
        yield number, example
