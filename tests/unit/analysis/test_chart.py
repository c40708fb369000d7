"""Line charts, read back from their SVG."""

from __future__ import annotations

from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np
import pytest

from elmo_framework.analysis.chart import line_chart, reliability_diagram
from elmo_framework.analysis.curves import Curve, Panel
from elmo_framework.analysis.page import show_number

SVG = "{http://www.w3.org/2000/svg}"


def drawn(*curves: Curve) -> Element:
    return ElementTree.fromstring(line_chart(Panel("A <title>", curves)))


def curve(*values: float, name: str = "loss") -> Curve:
    return Curve(name, tuple((10.0 * (n + 1), value) for n, value in enumerate(values)))


def corners(chart: Element, number: int = 0) -> np.ndarray:
    lines = chart.findall(f"{SVG}polyline")
    return np.array([pair.split(",") for pair in lines[number].get("points", "").split()], float)


def labels(chart: Element, anchor: str) -> dict[str, float]:
    """The ticks beside an axis, and where they stand."""
    held = [text for text in chart.findall(f"{SVG}text") if text.get("text-anchor") == anchor]
    return {text.text or "": float(text.get("y" if anchor == "end" else "x", "")) for text in held}


def test_points_align_with_tick_labels() -> None:
    chart = drawn(curve(0.0, 1.0, 4.0))
    up, across = labels(chart, "end"), labels(chart, "middle")
    points = corners(chart)
    # The text of a tick stands 3.5 below its line.
    np.testing.assert_allclose(
        points[:, 1], [up[tick] - 3.5 for tick in ("0", "1", "4")], atol=0.11
    )
    np.testing.assert_allclose(
        points[:, 0], [across[tick] for tick in ("10", "20", "30")], atol=0.11
    )


def test_larger_values_are_higher_and_inside_the_chart() -> None:
    chart = drawn(curve(0.31, 0.33, 0.36), curve(0.34, 0.2, 0.3, name="other"))
    first, second = corners(chart), corners(chart, 1)
    assert first[0, 1] > first[1, 1] > first[2, 1]
    width, height = map(float, chart.get("viewBox", "").split()[2:])
    for points in (first, second):
        assert (points > 0).all()
        assert (points[:, 0] < width).all()
        assert (points[:, 1] < height).all()


def test_values_of_many_sizes_take_a_logarithmic_axis() -> None:
    chart = drawn(curve(1.0, 100.0, 1e4))
    steps = np.diff(corners(chart)[:, 1])
    assert steps[0] == pytest.approx(steps[1], abs=0.11)
    assert list(labels(chart, "end")) == ["1", "10", "100", "1000", "10,000"]


def test_a_linear_panel_has_no_logarithmic_axis() -> None:
    panel = Panel("Scores", (curve(0.001, 0.5, 0.999),), is_linear=True)
    chart = ElementTree.fromstring(line_chart(panel))
    steps = np.diff(corners(chart)[:, 1])
    assert steps[0] == pytest.approx(steps[1], abs=0.11)
    assert list(labels(chart, "end")) == ["0", "0.5", "1"]


@pytest.mark.parametrize("score", [0.0, 0.75, 1.0])
def test_axis_of_a_constant_score_ends_at_one(score: float) -> None:
    panel = Panel("Scores", (curve(score, score),), is_linear=True)
    chart = ElementTree.fromstring(line_chart(panel))
    ticks = [float(tick) for tick in labels(chart, "end")]
    assert (ticks[0], ticks[-1]) == (0, 1)


def test_ticks_of_steps_are_whole_numbers() -> None:
    few = Curve("loss", ((1, 0.5), (2, 0.4)))
    assert list(labels(drawn(few), "middle")) == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("value", "ticks"),
    [
        (0.002, ["0", "0.001", "0.002", "0.003", "0.004"]),
        (0.0, ["0", "0.5", "1"]),
        (-3.0, ["-6", "-4", "-2", "0"]),
    ],
)
def test_a_curve_that_does_not_move_has_an_axis_from_zero(value: float, ticks: list[str]) -> None:
    assert list(labels(drawn(curve(value, value)), "end")) == ticks


def test_a_single_point_is_seen() -> None:
    (dot,) = drawn(curve(2.0)).findall(f"{SVG}circle")
    assert dot.findtext(f"{SVG}title") == "loss: 2 at step 10"


def test_chart_of_only_step_zero_has_an_axis() -> None:
    chart = drawn(Curve("loss", ((0.0, 2.0),)))
    assert next(iter(labels(chart, "middle"))) == "0"
    (dot,) = chart.findall(f"{SVG}circle")
    assert float(dot.get("cx", "")) == labels(chart, "middle")["0"]


def test_a_long_curve_is_the_mean_of_its_parts() -> None:
    chart = drawn(curve(*[0.0, 2.0] * 450))
    assert len(corners(chart)) == 300
    assert chart.findall(f"{SVG}circle") == []
    middle = labels(chart, "end")["1"] - 3.5
    assert np.abs(corners(chart)[:, 1].mean() - middle) < 0.2


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.123456, "0.1235"),
        (161.04, "161"),
        (5.0, "5"),
        (123456.7, "123,457"),
        (1.9e10, "1.9e+10"),
        (-0.5, "-0.5"),
    ],
)
def test_figures_have_four_digits_that_count(value: float, shown: str) -> None:
    assert show_number(value) == shown


def test_a_panel_with_ticks_has_a_logarithmic_axis() -> None:
    ticks = {0.01: "1 %", 0.1: "10 %", 1.0: "100 %"}
    variant = Curve("mini", tuple((fraction, 50.0) for fraction in ticks))
    chart = ElementTree.fromstring(line_chart(Panel("Scores", (variant,), ticks=ticks)))
    first, second, third = corners(chart)[:, 0]
    assert second - first == pytest.approx(third - second)
    assert {"1 %", "10 %", "100 %", "mini"} <= {each.text for each in chart.iter(f"{SVG}text")}


def test_intervals_are_drawn_to_scale() -> None:
    ticks = {0.5: "50 %", 1.0: "100 %"}
    variant = Curve("mini", ((0.5, 20.0), (1.0, 30.0)), ((10.0, 20.0), (20.0, 40.0)))
    chart = ElementTree.fromstring(line_chart(Panel("Scores", (variant,), ticks=ticks)))
    lines = [each for each in chart.iter(f"{SVG}line") if each.get("class") == "interval curve-0"]
    heights = [float(each.get("y1", "")) - float(each.get("y2", "")) for each in lines]
    assert heights[1] == pytest.approx(2 * heights[0], abs=0.2)
    assert [float(each.get("x1", "")) for each in lines] == pytest.approx(corners(chart)[:, 0])


def test_bars_of_a_reliability_diagram_have_the_height_of_the_accuracy() -> None:
    bins = [
        {"count": 0, "confidence": 0.0, "accuracy": 0.0},
        {"count": 4, "confidence": 0.8, "accuracy": 0.25},
    ]
    picture = ElementTree.fromstring(reliability_diagram(bins, title="after"))
    (bar,) = picture.iter(f"{SVG}rect")
    assert (bar.get("x"), bar.get("y"), bar.get("height")) == ("146.0", "162.0", "50.0")
