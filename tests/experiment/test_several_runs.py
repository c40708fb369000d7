"""Commands that take several runs: `elmo compare`, and ensembles in `evaluate` and `predict`."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from elmo_framework.commands.main import main
from elmo_framework.commands.predict import Predict
from elmo_framework.experiment.load_run import load
from tests.experiment.jobs import DATA, TAGGING, train


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compared")
    for name, changes in {
        "long-1": {"random_seed": 1},
        "long-2": {"random_seed": 2},
        "short-1": {"random_seed": 1, "trainer.num_epochs": 1},
        "short-2": {"random_seed": 2, "trainer.num_epochs": 1},
        "other": {"validation_data_path": str(DATA / "test.txt")},
    }.items():
        metric = {"trainer.num_epochs": 2, "trainer.validation_metric": "-loss"}
        small = {**TAGGING, **metric, "dataset_reader.max_instances": 16, **changes}
        assert train("experiments/demo/baseline.jsonnet", folder / name, small) == 0
    return folder


def compared(
    capsys: pytest.CaptureFixture[str], runs: Path, sides: str, *flags: str
) -> dict[str, Any]:
    words = [word if word == "--to" else str(runs / word) for word in sides.split()]
    assert main(["compare", *words, "--device", "cpu", "--format", "json", *flags]) == 0
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    return result


def test_seeds_are_compared_in_pairs(runs: Path, capsys: pytest.CaptureFixture[str]):
    changes = runs / "changes.json"
    flags = ["--metric", "loss", "--output-file", str(changes)]
    result = compared(capsys, runs, "long-1 long-2 --to short-2 short-1", *flags)

    assert result["seeds"] == [1, 2]
    assert result["others"] == [str(runs / "short-1"), str(runs / "short-2")]
    (metric,) = result["metrics"]
    run = load(runs / "long-1", device="cpu")
    assert metric["runs"][0] == pytest.approx(run.evaluate(DATA / "valid.txt")["loss"])
    low, high = metric["difference"]["interval"]
    assert low <= metric["difference"]["value"] <= high
    written = json.loads(changes.read_text())
    predicted = written["changes"][0]["runs"][str(runs / "long-1")]
    number = written["changes"][0]["number"]
    prediction, example = run.score(DATA / "valid.txt").predictions[number - 1]
    assert predicted == run.head().task.to_json(prediction, example)


def test_a_table_for_reading(runs: Path, capsys: pytest.CaptureFixture[str]):
    words = ["compare", str(runs / "long-1"), "--to", str(runs / "short-1"), "--device", "cpu"]
    table = runs / "changes.tsv"
    assert main([*words, "--output-file", str(table)]) == 0
    lines = capsys.readouterr().out.splitlines()

    assert "one run on each side: the interval is over examples, not over seeds" in lines[0]
    assert lines[4].split()[0] == "loss"
    assert table.read_text().splitlines()[0] == "number\teffect\tlength\tclasses"


def test_other_validation_data_need_a_file(runs: Path, capsys: pytest.CaptureFixture[str]):
    words = ["compare", str(runs / "long-1"), "--to", str(runs / "other"), "--device", "cpu"]
    assert main(words) == 2
    assert "other differ; pass --file to score both on the same file" in capsys.readouterr().err
    result = compared(capsys, runs, "long-1 --to other", "--file", str(DATA / "test.txt"))
    assert result["metrics"][0]["metric"] == "loss"


def test_held_out_parts_of_the_training_data_are_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    for name, changes in {"a": {}, "b": {"random_seed": 1}, "c": {"test_fraction": 0.4}}.items():
        parts = {"validation_data_path": None, "validation_fraction": 0.2, "test_fraction": 0.3}
        small = {**TAGGING, "trainer.num_epochs": 1, "trainer.validation_metric": "-loss"}
        changes = {**small, "test_data_path": None, **parts, **changes}
        assert train("experiments/demo/baseline.jsonnet", tmp_path / name, changes) == 0
    capsys.readouterr()
    run = load(tmp_path / "a", device="cpu")
    for flags, split in ([], "validation"), (["--test"], "test"):
        result = compared(capsys, tmp_path, "a --to b", *flags)
        scored = run.score(None, split=split)
        assert result["num_examples"] == len(scored.predictions)
        loss = run.model.scores(scored.sums)["loss"]
        assert result["metrics"][0]["runs"] == [pytest.approx(loss)]
    words = [str(tmp_path / "a"), "--to", str(tmp_path / "c"), "--test"]
    assert main(["compare", *words]) == 2
    message = f"the test data of {tmp_path / 'a'} and {tmp_path / 'c'} differ; pass --file"
    assert message in capsys.readouterr().err


def test_runs_without_test_data_are_named(runs: Path, capsys: pytest.CaptureFixture[str]):
    words = ["compare", str(runs / "long-1"), "--to", str(runs / "long-2")]
    assert main([*words, "--test"]) == 2
    assert f"{runs / 'long-1'}: this run has no test data; pass --file" in capsys.readouterr().err
    assert main([*words, "--test", "--file", str(DATA / "test.txt")]) == 2
    assert "not allowed with" in capsys.readouterr().err


def test_a_run_equals_itself(runs: Path, capsys: pytest.CaptureFixture[str]):
    result = compared(capsys, runs, "long-1 --to long-1")

    (metric,) = result["metrics"]
    assert metric["difference"] == {"value": 0.0, "interval": [0.0, 0.0], "p": 1.0}
    assert {each["equal"] for each in result["by_class"]} != {0}
    assert {each["better"] + each["worse"] for each in result["by_class"]} == {0}


def test_an_ensemble_is_scored_and_predicts(runs: Path, capsys: pytest.CaptureFixture[str]):
    first, second = str(runs / "long-1"), str(runs / "long-2")
    flags = ["--device", "cpu", "--ensemble", second]
    data = str(DATA / "valid.txt")
    assert main(["evaluate", first, data, "--format", "json", *flags]) == 0
    printed = json.loads(capsys.readouterr().out)[data]
    loaded = load([first, second], device="cpu")
    assert printed.items() >= loaded.evaluate(data).items()
    assert "loss" not in printed

    text = runs / "text.txt"
    text.write_text("Anna left Lisbon .\n")
    assert main(["predict", first, str(text), "--sentences", "--combine", "vote", *flags]) == 0
    line = json.loads(capsys.readouterr().out)
    voting = load([first, second], combine="vote", device="cpu")
    assert [line] == voting.predict_file(text, form="sentences")


def test_wrong_ensembles_are_refused(runs: Path, capsys: pytest.CaptureFixture[str]):
    run, data = str(runs / "long-1"), str(DATA / "valid.txt")
    assert main(["evaluate", run, data, "--combine", "vote"]) == 2
    assert "--combine needs --ensemble" in capsys.readouterr().err
    assert main(["evaluate", "mini", data, "--ensemble", run]) == 2
    assert "--ensemble is for a run, and mini is a biLM" in capsys.readouterr().err
    assert main(["evaluate", run, data, "--ensemble", f"{run}/../long-1"]) == 2
    assert f"{run} is listed twice; name each run once" in capsys.readouterr().err
    with pytest.raises(ValueError, match="an ensemble needs at least one run"):
        load([])


def test_another_combination_is_not_resumed(runs: Path, capsys: pytest.CaptureFixture[str]):
    first, second = str(runs / "long-1"), str(runs / "long-2")
    settings = []
    for combine in ("mean", "vote"):
        command = Predict(run_folder=Path(first), ensemble=[Path(second)], combine=combine)
        settings.append(command._settings(load([first, second], device="cpu"), io.BytesIO()))
    alone = Predict(run_folder=Path(first))._settings(load(first, device="cpu"), io.BytesIO())
    assert settings[0] != settings[1]
    assert "combine" not in alone
