from pathlib import Path

import pytest

from elmo_framework.commands.main import main
from elmo_framework.experiment import train as training

METRICS = {
    "training_end": "all epochs done",
    "training_steps": 3,
    "training_duration": 1.0,
    "best_step": 2,
    "test_accuracy": 0.5,
}


@pytest.mark.parametrize(("rank", "speaks"), [(None, True), ("0", True), ("1", False)])
def test_only_the_first_process_reports_the_result(
    rank: str | None,
    speaks: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(training, "train", lambda *_, **__: METRICS)
    monkeypatch.delenv("RANK", raising=False)
    if rank is not None:
        monkeypatch.setenv("RANK", rank)
    config = tmp_path / "config.json"
    config.write_text("{}")
    assert main(["train", str(config), "-s", "runs/ner"]) == 0
    said = capsys.readouterr().err
    assert ("3 steps in 1 second, the best at step 2" in said) is speaks
    assert ("test_accuracy 0.5" in said) is speaks


def test_recovery_without_a_run_says_that_a_new_one_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(training, "train", lambda *_, **__: METRICS)
    config, run = tmp_path / "config.json", tmp_path / "run"
    config.write_text("{}")
    message = f"{run}: no run to resume; starting a new one"
    assert main(["train", str(config), "-s", str(run), "--recover"]) == 0
    assert message in capsys.readouterr().err
    run.mkdir()
    (run / "filled_config.json").write_text("{}")
    assert main(["train", str(config), "-s", str(run), "--recover"]) == 0
    assert message not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "config", "message"),
    [
        ("train", '{"configs": {}, "seeds": [1]}', "this is a study; run `elmo study`"),
        ("find-lr", '{"configs": {}, "seeds": [1]}', "this is a study; run `elmo study`"),
        ("study", '{"model": "x"}', "this is the config of one experiment; run `elmo train`"),
    ],
)
def test_studies_and_experiments_are_told_apart(
    command: str, config: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "config.json"
    path.write_text(config)
    assert main([command, str(path), "-s", str(tmp_path / "run")]) == 2
    assert f"{path}: {message}" in capsys.readouterr().err
