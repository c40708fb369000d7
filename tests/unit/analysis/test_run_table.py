"""`elmo print-results` and `elmo diff`: tables of runs that were written by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from elmo_framework.analysis.run_difference import run_difference
from elmo_framework.analysis.run_table import find_runs, run_table
from elmo_framework.commands.main import main
from elmo_framework.errors import RunError
from elmo_framework.model.weights import save_tensors

METRICS = {
    "best_validation_loss": 0.5,
    "best_validation_accuracy": 0.75,
    "best_validation_table": {"a": {"f1-measure": 1.0}},
    "training_steps": 40,
    "training_duration": 90.0,
}


def write_run(
    path: Path, metrics: dict[str, Any] | None, tensors: dict[str, Tensor] | None = None, **config
) -> Path:
    path.mkdir(parents=True)
    (path / "filled_config.json").write_text(json.dumps(config))
    if metrics is not None:
        (path / "metrics.json").write_text(json.dumps(metrics))
    if tensors is not None:
        save_tensors(tensors, path / "weights.safetensors")
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_run(tmp_path / "b" / "2", METRICS, trainer={"validation_metric": "+accuracy"})
    write_run(tmp_path / "b" / "1", {**METRICS, "test_loss": 0.7}, trainer={})
    write_run(tmp_path / "a", None)
    (tmp_path / "notes").mkdir()
    return tmp_path


def test_the_metric_that_chose_the_weights_is_shown(folder: Path) -> None:
    table = run_table(find_runs(folder), (), folder=folder)

    assert table.columns[0] == "run"
    assert set(table.columns[1:]) == {
        "best_validation_loss",
        "test_loss",
        "best_validation_accuracy",
        "training_steps",
        "minutes",
    }
    assert [row["run"] for row in table.rows] == ["b/1", "b/2"]
    assert (table.rows[0]["test_loss"], table.rows[1]["minutes"]) == (0.7, 1.5)
    assert (table.imported, table.unfinished) == ([], ["a"])
    (folder / "a/weights.safetensors").touch()
    table = run_table(find_runs(folder), (), folder=folder)
    assert (table.imported, table.unfinished) == (["a"], [])


def test_patterns_choose_metrics_in_their_order(folder: Path) -> None:
    table = run_table(find_runs(folder), ("training_*", "*loss"), folder=folder)
    expected = ["training_steps", "training_duration", "best_validation_loss", "test_loss"]
    assert table.columns == ["run", *expected]
    assert "test_loss" not in table.rows[1]


def test_an_unknown_metric_is_refused_with_the_nearest(folder: Path) -> None:
    with pytest.raises(RunError, match=r"'test_los'.*Did you mean 'test_loss'"):
        run_table(find_runs(folder), ("test_los",), folder=folder)


def test_a_metric_without_its_prefix_is_recognized(folder: Path) -> None:
    with pytest.raises(RunError, match="Did you mean 'best_validation_loss'"):
        run_table(find_runs(folder), ("loss",), folder=folder)


def test_a_folder_without_runs_is_refused(folder: Path) -> None:
    with pytest.raises(RunError, match="no run here or below"):
        find_runs(folder / "notes")
    with pytest.raises(RunError, match=r"note: does not exist. Did you mean '.*notes'\?"):
        find_runs(folder / "note")


@pytest.mark.parametrize("form", ["text", "csv", "tsv", "json"])
def test_results_are_printed(folder: Path, form: str, capsys) -> None:
    assert main(["print-results", str(folder), "-k", "*accuracy", "--format", form]) == 0
    printed = capsys.readouterr()
    assert "not finished: a" in printed.err
    if form == "json":
        assert json.loads(printed.out)[0] == {"run": "b/1", "best_validation_accuracy": 0.75}
    else:
        separator = {"text": None, "csv": ",", "tsv": "\t"}[form]
        cells = [line.split(separator) for line in printed.out.splitlines()]
        assert [cells[0], cells[-1]] == [["run", "best_validation_accuracy"], ["b/2", "0.75"]]


def test_differences_are_those_of_settings_and_tensors(tmp_path: Path) -> None:
    same = {
        "same": torch.ones(2, dtype=torch.float16),
        "moved": torch.tensor([3.0, 4.0]),
        "wider": torch.ones(2),
    }
    other = {
        **same,
        "same": torch.ones(2),
        "moved": torch.tensor([3.0, 1.0]),
        "wider": torch.ones(3),
        "new": torch.ones(1),
    }
    first = write_run(tmp_path / "x" / "1", METRICS, same, model={"dim": 3, "type": "a"})
    second = write_run(tmp_path / "x" / "2", METRICS, other, model={"dim": 4, "type": "a"})

    difference = run_difference(first, second)

    assert difference.settings == {"model.dim": ["3", "4"]}
    assert difference.num_equal == 1
    moved, wider, new = difference.weights or ()
    assert (moved.name, moved.largest) == ("moved", 3.0)
    assert moved.relative == pytest.approx(3 / 5)
    assert (wider.shapes, wider.largest) == (((2,), (3,)), None)
    assert (new.name, new.shapes) == ("new", (None, (1,)))


def test_differences_are_printed(tmp_path: Path, capsys) -> None:
    tensors = {"a": torch.zeros(2, 3)}
    runs = [write_run(tmp_path / name, METRICS, tensors, seed=name) for name in ("one", "two")]
    assert main(["diff", *map(str, runs)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [lines[0].split(), lines[2].split()] == [
        ["setting", "one", "two"],
        ["seed", "one", "two"],
    ]
    assert lines[-1] == "equal tensors: 1"
    assert main(["diff", *map(str, runs), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["settings"] == {"seed": ["one", "two"]}


def test_a_run_without_weights_has_settings_to_compare(tmp_path: Path, capsys) -> None:
    runs = [write_run(tmp_path / name, None, seed=1) for name in ("one", "two")]
    assert main(["diff", *map(str, runs)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "The settings are the same.",
        "",
        "One of the runs has no weights yet.",
    ]
