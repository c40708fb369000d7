"""The curves of a run, read from its logs and put together by what they show."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from elmo_framework.metrics.metric import is_of_one_type
from elmo_framework.training.callback import METRICS_LOG, STEPS_LOG, read_log

_Line: TypeAlias = Mapping[str, float]
"""A line of a log: `step`, `seconds` and metrics by name."""

_OF_STEPS = {
    "loss": "Training loss",
    "tokens_per_second": "Tokens a second",
    "learning_rate": "Learning rate",
    "gradient_norm": "Gradient norm",
    "penalty": "Penalty added to the loss",
}

_UNBOUNDED = {"perplexity": "Validation perplexity", "loss": "Validation loss"}
"""Titles of the validation metrics without an upper bound, by a part of their names."""

_CLIP_RATES = "Share of the numbers at a clip"
"""Rates of several sizes, of which small ones count too."""

_LARGEST_PANEL = 6
"""The number of curves that a reader can still distinguish."""


@dataclass(frozen=True)
class Curve:
    """The values of a metric in the course of training, or of a variant over amounts of data.

    Attributes:
        name: of the metric or the variant.
        points: its values by steps of training, or by the panel's `ticks`; all are finite.
        intervals: around the points, from low to high; empty without any.
        number: of its color, which several panels may share; by default its place in the panel.
    """

    name: str
    points: tuple[tuple[float, float], ...]
    intervals: tuple[tuple[float, float], ...] = ()
    number: int | None = None


@dataclass(frozen=True)
class Panel:
    """Curves that share their axes.

    Attributes:
        title: the common title of the curves.
        curves: one or more.
        is_linear: whether the axis of values is linear, however much they span; otherwise a wide
            span of positive values takes a logarithmic one.
        ticks: labels of a logarithmic axis across, by its positive values; without any, the axis
            is linear.
        axis: what the axis across shows.
    """

    title: str
    curves: tuple[Curve, ...]
    is_linear: bool = False
    ticks: Mapping[float, str] = field(default_factory=dict)
    axis: str = "steps of training"


def read_panels(run: Path) -> list[Panel]:
    """Return the curves of a run, also of one that is not finished.

    First come the scores, then the values of parts of the model, such as the weights of a layer
    mix, then those of updates. Where there is a score over all types (`f1-measure-overall`),
    those of single types are left out.
    """
    evaluations, updates = _read(run / METRICS_LOG), _read(run / STEPS_LOG)
    groups: dict[str, list[str]] = {}
    for name in _names(evaluations):
        groups.setdefault(_title(name), []).append(name)
    panels = [
        _panel(title, _curves(evaluations, names[start : start + _LARGEST_PANEL]))
        for title, names in groups.items()
        for start in range(0, len(names), _LARGEST_PANEL)
    ]
    panels += [Panel(title, _curves(updates, [name])) for name, title in _OF_STEPS.items()]
    return [panel for panel in panels if panel.curves]


def common_panels(runs: Mapping[str, Path]) -> list[Panel]:
    """Return a panel for each metric, with a curve for each run that has it.

    The values of parts of the model are left out.

    Args:
        runs: the folders of runs by their names.
    """
    logs = {name: (_read(run / METRICS_LOG), _read(run / STEPS_LOG)) for name, run in runs.items()}
    names = dict.fromkeys(each for lines, _ in logs.values() for each in _names(lines))
    evaluations = [
        _panel(name, _curves_of_runs({run: lines for run, (lines, _) in logs.items()}, name))
        for name in names
        if "." not in name
    ]
    updates = [
        Panel(title, _curves_of_runs({run: lines for run, (_, lines) in logs.items()}, name))
        for name, title in _OF_STEPS.items()
    ]
    return [panel for panel in (*evaluations, *updates) if panel.curves]


def _curves_of_runs(logs: Mapping[str, Sequence[_Line]], metric: str) -> tuple[Curve, ...]:
    curves = (
        Curve(run, tuple(_points(lines, metric)), number=number)
        for number, (run, lines) in enumerate(logs.items())
    )
    return tuple(curve for curve in curves if curve.points)


def _read(path: Path) -> list[_Line]:
    return [] if not path.exists() else [line for _, line in read_log(path)]


def _names(lines: Sequence[_Line]) -> list[str]:
    """Return the names of the metrics that are shown, scores first."""
    names = list(dict.fromkeys(name for line in lines for name in line))
    shown = [
        name
        for name in names
        if name not in ("step", "seconds")
        and not name.startswith("num_")
        and not is_of_one_type(name, names)
    ]
    return sorted(shown, key=lambda name: "." in name)


def _title(name: str) -> str:
    part, _, metric = name.rpartition(".")
    if part == "clip_rate":
        return _CLIP_RATES
    if part:
        return f"{part}: gamma" if metric == "gamma" else part
    for kind, title in _UNBOUNDED.items():
        if kind in name:
            return title
    return "Validation scores"


def _panel(title: str, curves: tuple[Curve, ...]) -> Panel:
    """Return a panel of evaluations; scores and weights in [0, 1] have a linear axis."""
    may_span = title in (*_UNBOUNDED.values(), _CLIP_RATES) or _title(title) in _UNBOUNDED.values()
    values = [value for curve in curves for _, value in curve.points]
    return Panel(title, curves, not may_span and all(0 <= value <= 1 for value in values))


def _curves(lines: Sequence[_Line], names: Sequence[str]) -> tuple[Curve, ...]:
    curves = [Curve(name.rpartition(".")[2], tuple(_points(lines, name))) for name in names]
    return tuple(curve for curve in curves if curve.points)


def _points(lines: Sequence[_Line], name: str) -> Iterator[tuple[float, float]]:
    for line in lines:
        if isinstance(line.get(name), int | float) and math.isfinite(line[name]):
            yield line["step"], line[name]
