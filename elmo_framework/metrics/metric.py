"""Base class of metrics, which compute scores from sums over examples."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from difflib import get_close_matches
from typing import Any, TypeAlias, get_args, get_type_hints

from elmo_framework.config.registry import Registrable
from elmo_framework.config.signature import is_union
from elmo_framework.errors import BuildError
from elmo_framework.metrics.ratios import AVERAGES

_OVER_LABELS = tuple(f"-{name}" for name in ("overall", *AVERAGES))
_NEAR = 0.86
"""The least similarity of a misspelled name, above that of the label `weight` to `weighted`."""

Table: TypeAlias = Mapping[str, Mapping[str, float]]
"""Counts, or scores of labels, by row and column."""


class Metric(Registrable, ABC):
    """Computes the summands of each example, and scores from the sums.

    Sums are added over batches and processes in any order, so that a score over several of
    them is exact. The type of `prediction` in `count` determines which tasks the metric is for:
    those that predict this type, or one of its union; `Any` is for all.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "prediction" not in cls.count.__annotations__:
            raise TypeError(
                f"{cls.count.__qualname__}: annotate its parameter `prediction` with the type in "
                "`to_json` of the task, such as `prediction: Sequence[str]`, or with Any"
            )

    @abstractmethod
    def count(self, prediction: Any, gold: Any) -> Mapping[str, float]:
        """Return what one example adds to the sums."""

    @abstractmethod
    def score(self, sums: Mapping[str, float]) -> dict[str, float]:
        """Return the scores by name; 0 if nothing was counted.

        Statistics pass arrays, of the sums of many resamples, and fall back to one call for each
        if that fails: `ratio` and `harmonic_mean` take both numbers and arrays.
        """

    def table(self, sums: Mapping[str, float]) -> Table:
        """Return numbers by row and column that complement the scores; empty by default."""
        return {}

    def names_of_scores(self, labels: Collection[str]) -> Collection[str] | None:
        """Return the names of all scores of data with these labels; None if they are unknown.

        Args:
            labels: as the data has them, such as `B-PER`.
        """
        return None

    @classmethod
    def prediction_type(cls) -> Any:
        """Return the type of predictions that it compares; see `type_of_prediction`."""
        return type_of_prediction(cls.count)

    @classmethod
    def accepts(cls, prediction_type: Any) -> bool:
        own = cls.prediction_type()
        types = get_args(own) if is_union(own) else (own,)
        return prediction_type is Any or any(
            each in (Any, object, prediction_type) for each in types
        )


def type_of_prediction(function: Callable[..., Any]) -> Any:
    """Return the type of the parameter `prediction`; `Any` if it has no annotation.

    Raises:
        BuildError: the type is not imported at run time.
    """
    try:
        return get_type_hints(function).get("prediction", Any)
    except NameError as error:
        message = f"{function.__qualname__}: {error}; types of parameters are needed at run time"
        raise BuildError(message) from error


def is_of_one_type(name: str, names: Iterable[str]) -> bool:
    """Return whether a score is of one type of label, such as `f1-measure-PER`.

    Args:
        name: the name of the score.
        names: all names of scores; `f1-measure-overall` and averages such as `f1-measure-macro`
            imply scores of types `f1-measure-*`.
    """
    families = {each.rpartition("-")[0] + "-" for each in names if is_over_labels(each)}
    if "f1-measure-" in families:
        families |= {"precision-", "recall-"}
    return name.startswith(tuple(families)) and not is_over_labels(name)


def is_over_labels(name: str) -> bool:
    """Return whether a score is one over all labels, such as `f1-measure-overall`."""
    return name.endswith(_OVER_LABELS)


def is_nearly_over_labels(name: str) -> bool:
    """Return whether a score is probably a misspelled one over all labels: `f1-measure-ovrall`."""
    end = name.rpartition("-")[2]
    near = get_close_matches(end, ("overall", *AVERAGES), cutoff=_NEAR)
    return bool(near) and not is_over_labels(name)
