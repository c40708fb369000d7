"""Searches whose trials do not depend on scores: a grid, a list, random values."""

from __future__ import annotations

import json
import math
import random
from abc import ABC
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Annotated, Any, TypeAlias, final

from annotated_types import Ge, Gt, Le, Lt

from elmo_framework.study.distribution import Distribution, require_distinct
from elmo_framework.study.search import Search, Trial

_MAX_TRIALS = 10_000
_DRAWS_PER_TRIAL = 1_000
"""The number of draws after which a space is too small for another combination."""

NumTrials: TypeAlias = Annotated[int, Gt(0), Le(_MAX_TRIALS)]
Seed: TypeAlias = Annotated[int, Ge(0), Lt(2**31)]


class _FixedSearch(Search, ABC):
    """Base class of searches that return all of their trials at once.

    Attributes:
        combinations: the overrides of all trials.
    """

    combinations: Sequence[Mapping[str, Any]]

    @property
    def num_trials(self) -> int:
        return len(self.combinations)

    def trials(
        self, scores: Mapping[str, float | None], *, folder: Path, num_open: int
    ) -> Sequence[Trial]:
        return [Trial(trial_name(number), each) for number, each in enumerate(self.combinations)]


@final
@Search.register("grid")
class GridSearch(_FixedSearch):
    """Tries all combinations of values; those of the last key change fastest.

    Args:
        space: the values of each dotted key of the config.
    """

    def __init__(self, space: dict[str, list[Any]]) -> None:
        require_keys(space)
        for key, values in space.items():
            require_distinct(f"space.{key}", values)
        num_trials = math.prod(map(len, space.values()))
        if num_trials > _MAX_TRIALS:
            raise ValueError(f"the grid has {num_trials:,} combinations; at most {_MAX_TRIALS:,}")
        self._space = space
        self.combinations = [
            dict(zip(space, values, strict=True)) for values in product(*space.values())
        ]

    def examples(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        for key, values in self._space.items():
            for value in values:
                yield f"space.{key}", {key: value}


@final
@Search.register("list")
class ListSearch(_FixedSearch):
    """Tries the combinations of a list.

    Args:
        trials: for each trial, its values by dotted key of the config; `{}` changes nothing.
    """

    def __init__(self, trials: list[dict[str, Any]]) -> None:
        require_distinct("trials", trials)
        self.combinations = trials

    def examples(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        for number, overrides in enumerate(self.combinations):
            yield f"trials[{number}]", overrides


@final
@Search.register("random")
class RandomSearch(_FixedSearch):
    """Tries values drawn at random, no combination twice.

    A larger `num_trials` leaves the values of the first trials as they are.

    Args:
        space: the distribution of each dotted key of the config.
        num_trials: the number of combinations.
        seed: of the draws.
    """

    def __init__(
        self, space: dict[str, Distribution], num_trials: NumTrials = 20, seed: Seed = 0
    ) -> None:
        require_keys(space)
        self._space = space
        self.combinations = _distinct_draws(space, num_trials, seed)

    def examples(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        return examples_of(self._space)


def _distinct_draws(
    space: Mapping[str, Distribution], num_draws: int, seed: int
) -> list[dict[str, Any]]:
    """Draw combinations; those of each number follow from it, the seed and the key alone."""
    draws: dict[str, dict[str, Any]] = {}
    for number in range(num_draws * _DRAWS_PER_TRIAL):
        drawn = {
            key: distribution.sample(random.Random(f"{seed} {number} {key}"))
            for key, distribution in space.items()
        }
        draws.setdefault(json.dumps(drawn, sort_keys=True), drawn)
        if len(draws) == num_draws:
            return [*draws.values()]
        if len(draws) == math.prod(each.size or math.inf for each in space.values()):
            break
    raise ValueError(
        f"num_trials is {num_draws}, but the space has only {len(draws)} combinations; use the "
        "type 'grid'"
    )


def trial_name(number: int) -> str:
    """Return the name of a trial: `000`, `001`, ..."""
    return f"{number:03}"


def examples_of(space: Mapping[str, Distribution]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the extreme values of each key; see `Search.examples`."""
    for key, distribution in space.items():
        for value in distribution.extremes:
            yield f"space.{key}", {key: value}


def require_keys(space: Mapping[str, Any]) -> None:
    """Raise ValueError for an empty space."""
    if not space:
        raise ValueError("space is empty")
