"""Distributions of the values that a search tries for one key of a config."""

from __future__ import annotations

import json
import math
import random
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Annotated, Any, TypeAlias, final

from annotated_types import Ge, Le

from elmo_framework.config.registry import Registrable
from elmo_framework.config.types import MAX_COUNT

Whole: TypeAlias = Annotated[int, Ge(-MAX_COUNT), Le(MAX_COUNT)]


class Distribution(Registrable, ABC):
    """Values that a search may give to one key; an object without a `type` is a `choice`.

    Attributes:
        size: the number of values; None if there are infinitely many.
        extremes: the values to check; a key that accepts them accepts all values.
    """

    default_member = "choice"
    size: int | None
    extremes: Sequence[Any]

    @abstractmethod
    def sample(self, generator: random.Random) -> Any:
        """Draw a value."""

    @abstractmethod
    def suggest(self, trial: Any, key: str) -> Any:
        """Ask an `optuna.Trial` for a value."""


@final
@Distribution.register("choice")
class Choice(Distribution):
    """One of a list of values, with equal probability.

    Args:
        values: JSON of any type; an object replaces the whole value of the key.
    """

    def __init__(self, values: list[Any]) -> None:
        require_distinct("values", values)
        self.extremes, self.size = values, len(values)

    def sample(self, generator: random.Random) -> Any:
        return generator.choice(self.extremes)

    def suggest(self, trial: Any, key: str) -> Any:
        # Optuna stores numbers and strings only.
        return json.loads(trial.suggest_categorical(key, [*map(json.dumps, self.extremes)]))


@final
@Distribution.register("uniform")
class Uniform(Distribution):
    """A number between two bounds, uniformly.

    Args:
        low: the lower bound.
        high: the upper bound, above `low`.
    """

    def __init__(self, low: float, high: float) -> None:
        _require_range(low, high)
        self.extremes, self.size = (low, high), None

    def sample(self, generator: random.Random) -> float:
        return generator.uniform(*self.extremes)

    def suggest(self, trial: Any, key: str) -> Any:
        return trial.suggest_float(key, *self.extremes)


@final
@Distribution.register("log_uniform")
class LogUniform(Distribution):
    """A positive number between two bounds whose logarithm is uniform, as for learning rates.

    Args:
        low: the lower bound, above 0.
        high: the upper bound, above `low`.
    """

    def __init__(self, low: float, high: float) -> None:
        _require_range(low, high)
        if low <= 0:
            raise ValueError(f"low must be positive, not {low}")
        self.extremes, self.size = (low, high), None

    def sample(self, generator: random.Random) -> float:
        low, high = map(float, self.extremes)
        value = math.exp(generator.uniform(math.log(low), math.log(high)))
        return min(max(value, low), high)  # exp(log(x)) may be outside by a rounding error

    def suggest(self, trial: Any, key: str) -> Any:
        return trial.suggest_float(key, *self.extremes, log=True)


@final
@Distribution.register("integer")
class Integer(Distribution):
    """A whole number between two bounds, uniformly.

    Args:
        low: the smallest value.
        high: the largest value.
        step: the distance between two values, from `low` on.
    """

    def __init__(self, low: Whole, high: Whole, step: Whole = 1) -> None:
        _require_range(low, high)
        if step < 1 or (high - low) % step:
            raise ValueError(f"step must divide the range of {high - low}, not {step}")
        self.extremes, self.step = (low, high), step
        self.size = (high - low) // step + 1

    def sample(self, generator: random.Random) -> int:
        low, high = self.extremes
        return generator.randrange(low, high + 1, self.step)

    def suggest(self, trial: Any, key: str) -> Any:
        return trial.suggest_int(key, *self.extremes, step=self.step)


def _require_range(low: float, high: float) -> None:
    if not low < high:
        raise ValueError(f"low must be below high, not {low} and {high}")


def require_distinct(name: str, values: Sequence[Any]) -> None:
    """Raise ValueError if there are no values, or if one occurs twice."""
    if not values:
        raise ValueError(f"{name} is empty")
    texts = [json.dumps(value, sort_keys=True) for value in values]
    twice = next((value for value in texts if texts.count(value) > 1), None)
    if twice is not None:
        raise ValueError(f"{name}: the value {twice} occurs twice")
