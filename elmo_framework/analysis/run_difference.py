"""The settings and the weights in which two runs differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

from torch import Tensor

from elmo_framework.analysis.reported_run import differing_settings
from elmo_framework.experiment.run_directory import RunDirectory


@final
@dataclass(frozen=True)
class TensorDifference:
    """A tensor that is not the same in two runs.

    Attributes:
        name: in the model.
        shapes: in both; None where there is none.
        largest: the largest absolute difference of two numbers; None for different shapes.
        relative: the norm of the difference, divided by the larger norm; None for different shapes.
    """

    name: str
    shapes: tuple[Sequence[int] | None, Sequence[int] | None]
    largest: float | None = None
    relative: float | None = None


@final
@dataclass(frozen=True)
class RunDifference:
    """What is different in two runs.

    Attributes:
        settings: by dotted key the value in both, empty where a config lacks the key.
        weights: None if one of the runs has no weights yet.
        num_equal: number of tensors that are the same.
    """

    settings: Mapping[str, Sequence[str]]
    weights: Sequence[TensorDifference] | None
    num_equal: int = 0


def run_difference(first: Path | str, second: Path | str) -> RunDifference:
    """Compare the settings, with all defaults, and the best weights of two runs.

    Raises:
        RunError: one of them is not a run, or a file is damaged.
        DataError: an archive or a file of weights is damaged.
    """
    runs = [RunDirectory.begun(path) for path in (first, second)]
    settings = differing_settings([run.read(run.config) for run in runs])
    if not all(run.has_weights for run in runs):
        return RunDifference(settings, None)
    weights = [run.load_weights() for run in runs]
    names = dict.fromkeys(name for tensors in weights for name in tensors)
    differences = [
        _tensor_difference(name, *(each.get(name) for each in weights)) for name in names
    ]
    different = [each for each in differences if each is not None]
    return RunDifference(settings, different, len(names) - len(different))


def _tensor_difference(
    name: str, first: Tensor | None, second: Tensor | None
) -> TensorDifference | None:
    """Return the difference of two tensors of any types; None if their numbers are the same."""
    shapes = [None if each is None else tuple(each.shape) for each in (first, second)]
    if first is None or second is None or first.shape != second.shape:
        return TensorDifference(name, (shapes[0], shapes[1]))
    numbers = first.double(), second.double()
    if numbers[0].equal(numbers[1]):
        return None
    difference, norm = numbers[0] - numbers[1], max(float(each.norm()) for each in numbers)
    return TensorDifference(
        name,
        (shapes[0], shapes[1]),
        float(difference.abs().max()),
        float(difference.norm()) / norm,
    )
