"""Which curves a run has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from elmo_framework.analysis.curves import Curve, Panel, read_panels
from elmo_framework.errors import DataError


def write(path: Path, *lines: dict[str, float]) -> None:
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def test_a_run_without_logs_has_no_curves(tmp_path: Path) -> None:
    assert read_panels(tmp_path) == []


def test_metrics_are_grouped_into_panels(tmp_path: Path) -> None:
    first = {
        "mix.s_0": 0.25,
        "mix.s_1": 0.75,
        "mix.gamma": 1.5,
        "clip_rate.cell_1": 0.125,
        "loss": 4.0,
        "perplexity": 54.5,
        "forward_perplexity": 60.0,
        "accuracy": 0.5,
        "num_predictions": 100.0,
    }
    write(tmp_path / "metrics.jsonl", {"step": 10, "seconds": 1.0, **first})
    assert [
        (panel.title, [curve.name for curve in panel.curves]) for panel in read_panels(tmp_path)
    ] == [
        ("Validation loss", ["loss"]),
        ("Validation perplexity", ["perplexity", "forward_perplexity"]),
        ("Validation scores", ["accuracy"]),
        ("mix", ["s_0", "s_1"]),
        ("mix: gamma", ["gamma"]),
        ("Share of the numbers at a clip", ["cell_1"]),
    ]


def test_figures_of_updates_have_a_panel_each(tmp_path: Path) -> None:
    write(
        tmp_path / "steps.jsonl",
        {"step": 20, "seconds": 1.0, "loss": 2.0, "learning_rate": 0.5},
        {"step": 40, "seconds": 2.0, "loss": 1.0, "learning_rate": 0.25},
    )
    assert read_panels(tmp_path) == [
        Panel("Training loss", (Curve("loss", ((20, 2.0), (40, 1.0))),)),
        Panel("Learning rate", (Curve("learning_rate", ((20, 0.5), (40, 0.25))),)),
    ]


def test_scores_of_single_types_are_left_out(tmp_path: Path) -> None:
    scores = {"f1-measure-PER": 0.5, "f1-measure-overall": 0.25, "accuracy": 0.75}
    write(tmp_path / "metrics.jsonl", {"step": 1, "seconds": 1.0, **scores})
    (panel,) = read_panels(tmp_path)
    assert [curve.name for curve in panel.curves] == ["f1-measure-overall", "accuracy"]


def test_many_scores_take_several_panels(tmp_path: Path) -> None:
    scores = {f"score_{number}": 0.5 for number in range(8)}
    write(tmp_path / "metrics.jsonl", {"step": 1, "seconds": 1.0, **scores})
    assert [len(panel.curves) for panel in read_panels(tmp_path)] == [6, 2]


def test_incomplete_lines_and_infinite_values_are_skipped(
    tmp_path: Path,
) -> None:
    (tmp_path / "metrics.jsonl").write_text(
        '{"step": 1, "seconds": 1, "loss": 2.0}\n{"step": 2, "seconds": 2, "loss": Infinity}\n{"st'
    )
    assert read_panels(tmp_path) == [Panel("Validation loss", (Curve("loss", ((1, 2.0),)),))]


def test_a_figure_that_comes_later_has_fewer_points(tmp_path: Path) -> None:
    write(
        tmp_path / "metrics.jsonl",
        {"step": 1, "seconds": 1, "accuracy": 0.5},
        {"step": 2, "seconds": 2, "accuracy": 0.75, "recall": 0.25},
    )
    (panel,) = read_panels(tmp_path)
    assert panel.curves == (
        Curve("accuracy", ((1, 0.5), (2, 0.75))),
        Curve("recall", ((2, 0.25),)),
    )


def test_scores_and_weights_between_0_and_1_have_a_linear_axis(tmp_path: Path) -> None:
    scores = {"accuracy": 0.001, "mix.s_0": 1e-6, "mix.gamma": 2.0}
    others = {"loss": 0.5, "perplexity": 1.0, "clip_rate.cell_1": 1e-6}
    write(tmp_path / "metrics.jsonl", {"step": 1, "seconds": 1.0, **scores, **others})
    write(tmp_path / "steps.jsonl", {"step": 20, "seconds": 1.0, "learning_rate": 0.5})
    linear = [panel.title for panel in read_panels(tmp_path) if panel.is_linear]
    assert linear == ["Validation scores", "mix"]
    write(tmp_path / "metrics.jsonl", {"step": 1, "seconds": 1.0, "f1": 90.0})
    assert not read_panels(tmp_path)[0].is_linear


@pytest.mark.parametrize("line", [b"\xff", b"[1]", b"3", b'{"loss": 1}', b'{"step": "x"}'])
def test_a_damaged_line_is_named(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "steps.jsonl"
    path.write_bytes(line + b'\n{"step": 2, "loss": 1.0}\n')
    with pytest.raises(DataError, match=f"^{path}:1: this line is damaged; remove it$"):
        read_panels(tmp_path)
