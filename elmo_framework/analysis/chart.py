"""Charts as SVG: lines (`templates/chart.svg`) and reliability (`templates/reliability.svg`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from elmo_framework.analysis.curves import Curve, Panel
from elmo_framework.analysis.page import render

_WIDTH, _HEIGHT = 460, 230
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 14, 10, 26
"""Margins around the plot, for the labels of the ticks."""

_MOST_POINTS, _MOST_DOTS = 300, 40
_ROUNDING = 1e-9
"""How far a tick may be off, so that no other one is added for it."""
_LOGARITHMIC_FROM = 20.0
"""The ratio of the largest to the smallest value from which an axis is logarithmic."""


def line_chart(panel: Panel) -> str:
    """Draw the curves of a panel; the colors are those of the classes `curve-0`, `curve-1`, ..."""
    curves = [_thinned(curve) for curve in panel.curves]
    return render(
        "chart.svg",
        title=panel.title,
        curves=curves,
        labels=panel.ticks,
        axis=panel.axis,
        across=_axis_of_ticks(sorted(panel.ticks))
        if panel.ticks
        else _axis_across([0, *(step for curve in curves for step, _ in curve.points)]),
        up=_axis_up(list(_heights(curves)), is_linear=panel.is_linear),
        width=_WIDTH,
        height=_HEIGHT,
        left=_LEFT,
        right=_WIDTH - _RIGHT,
        bottom=_HEIGHT - _BOTTOM,
        most_dots=_MOST_DOTS,
    )


def reliability_diagram(bins: Sequence[Mapping[str, float]], *, title: str) -> str:
    """Draw the accuracy of each bin of confidences; calibrated ones end at the diagonal.

    Args:
        bins: of equal width, from 0 to 1, as `calibration.json` has them: `count`, `confidence` and
            `accuracy`. Bins with more items are darker.
        title: for readers that do not see it.
    """
    most = max((each["count"] for each in bins), default=0.0) or 1.0
    places = (
        {**each, "start": number / len(bins), "part": each["count"] / most}
        for number, each in enumerate(bins)
    )
    return render("reliability.svg", title=title, bins=list(places), num_bins=len(bins))


@dataclass(frozen=True)
class _Axis:
    """An axis of a chart.

    Attributes:
        ticks: the labeled values, from end to end.
        place: gives the coordinate of a value.
    """

    ticks: Sequence[float]
    place: Callable[[float], float]


def _axis_across(steps: Sequence[float]) -> _Axis:
    """Return an axis that ends with the last step; its ticks are whole numbers."""
    last = max(steps) or 1  # before the first update there is nothing but step 0
    ticks = [tick for tick in _round_numbers(0, last, smallest_width=1) if tick <= last]
    return _Axis(ticks, _places(float, 0, last, _LEFT, _WIDTH - _RIGHT))


def _axis_of_ticks(ticks: Sequence[float]) -> _Axis:
    """Return a logarithmic axis from the first tick to the last."""
    first, last = math.log10(ticks[0]), math.log10(ticks[-1])
    margin = (last - first) / 20 or 1.0
    place = _places(math.log10, first - margin, last + margin, _LEFT, _WIDTH - _RIGHT)
    return _Axis(ticks, place)


def _heights(curves: Sequence[Curve]) -> Iterator[float]:
    for curve in curves:
        yield from (value for _, value in curve.points)
        yield from (end for interval in curve.intervals for end in interval)


def _axis_up(values: Sequence[float], *, is_linear: bool) -> _Axis:
    """Return an axis that ends with round numbers around all values; linear ones are in [0, 1]."""
    low, high = min(values), max(values)
    is_logarithmic = not is_linear and low > 0 and high / low >= _LOGARITHMIC_FROM
    if low == high:
        low, high = (0.0, 1.0) if is_linear else sorted((0.0, 2 * high or 1.0))
    scale: Callable[[float], float] = math.log10 if is_logarithmic else float
    ticks = _decades(low, high) if is_logarithmic else _round_numbers(low, high)
    first, last = scale(min(low, ticks[0])), scale(max(high, ticks[-1]))
    return _Axis(ticks, _places(scale, first, last, _HEIGHT - _BOTTOM, _TOP))


def _places(
    scale: Callable[[float], float], first: float, last: float, start: float, end: float
) -> Callable[[float], float]:
    """Return what gives the coordinate of a value: `first` on the scale is at `start`."""

    def place(value: float) -> float:
        return start + (scale(value) - first) / (last - first) * (end - start)

    return place


def _round_numbers(low: float, high: float, *, smallest_width: float = 0.0) -> list[float]:
    """Return about five multiples of 1, 2 or 5 times a power of ten, from below `low` on."""
    rough = (high - low) / 4
    power = 10.0 ** math.floor(math.log10(rough))
    width = next(
        factor * power for factor in (1, 2, 5, 10) if factor * power > rough - _ROUNDING * power
    )
    width = max(width, smallest_width)
    first, last = math.floor(low / width + _ROUNDING), math.ceil(high / width - _ROUNDING)
    return [number * width for number in range(first, last + 1)]


def _decades(low: float, high: float) -> list[float]:
    """Return powers of ten around the values, at most seven of them."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    return [10.0**power for power in range(first, last + 1, 1 + (last - first) // 7)]


def _thinned(curve: Curve) -> Curve:
    """Return a curve of as many points as can be seen, each the mean of its neighbors."""
    size = -(-len(curve.points) // _MOST_POINTS)
    if size == 1:
        return curve
    groups = [curve.points[start : start + size] for start in range(0, len(curve.points), size)]
    means = (
        tuple(sum(values) / len(group) for values in zip(*group, strict=True)) for group in groups
    )
    return replace(curve, points=tuple((step, value) for step, value in means))
