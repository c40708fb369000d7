import json
import sys
from pathlib import Path
from typing import Any

import pytest
import task_scores
from children import Children
from task_scores import Run

from elmo_framework import components
from elmo_framework.config import parse
from elmo_framework.config.load import Config
from elmo_framework.experiment.experiment import Experiment


def finished(folder: Path, run: Run, score: float) -> Run:
    path = folder / run.folder / "metrics.json"
    path.parent.mkdir(parents=True)
    name = f"best_validation_{task_scores.TASKS[run.task].score}"
    path.write_text(json.dumps({name: score, "training_duration": 120.0}))
    return run


def test_a_line_has_means_deviations_and_the_error_that_is_gone(tmp_path: Path) -> None:
    scores = {("baseline", 1): 0.6, ("baseline", 2): 0.62, ("elmo", 1): 0.7, ("elmo", 2): 0.74}
    runs = [finished(tmp_path, Run("ner", 1.0, *key), score) for key, score in scores.items()]
    unfinished = [Run("squad", 0.05, "elmo", 1)]
    lines = task_scores.table(tmp_path, runs + unfinished, ["baseline", "elmo"]).splitlines()
    assert lines[2] == "| ner | 1 | 2 / 2 | 61.0 ± 1.4 | 72.0 ± 2.8 | 28.2% | 2 / 2 |"
    assert lines[3] == "| squad | 0.05 | 0 / 0 |  |  |  |  /  |"


def configuration(folder: Path, run: Run, bilm: str) -> dict[str, Any]:
    """What a run is trained by."""
    task_scores._write_configs(folder, run.task)
    overrides = task_scores._overrides(run, bilm)
    return Config.load(folder / task_scores._config_name(bilm), overrides=overrides).raw


@pytest.mark.parametrize(
    ("options", "earlier", "message"),
    [
        ([], {}, None),
        (["--bilm", "original"], {}, r"model\.embedder.*\.elmo\.bilm: 'mini' -> 'original'"),
        ([], {"train_fraction": 0.2}, r"train_fraction: 0\.2 -> 0\.1"),
        ([], {"data_loader": {"batch_size": 16}}, r"data_loader\.batch_size: 16 -> 32"),
    ],
)
@pytest.mark.parametrize("flags", [[], ["--table-only"]])
def test_finished_run_counts_only_for_its_configuration(
    options: list[str],
    earlier: dict[str, Any],
    message: str | None,
    flags: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = finished(tmp_path / "runs", Run("ner", 0.1, "elmo", 1), 0.5)
    before = {**configuration(tmp_path / "before", run, "mini"), **earlier}
    (tmp_path / "runs" / run.folder / "config.json").write_text(json.dumps(before))
    asked = ["--tasks", "ner", "--fractions", "0.1", "--seeds", "1", *options, *flags]
    monkeypatch.setattr(sys, "argv", ["", "--runs", str(tmp_path / "runs"), *asked])
    monkeypatch.setattr(task_scores, "_train", lambda *_, **__: 0)
    if message is None:
        assert task_scores.main() == 0
        assert "| ner | 0.1 | 0 / 1 |  | 50.0 |" in capsys.readouterr().out
    else:
        with pytest.raises(SystemExit, match=rf"{run.folder}: .*{message}"):
            task_scores.main()


@pytest.mark.parametrize("name", task_scores.TASKS)
def test_run_configs_are_valid_except_for_pretrained_files(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[list[str]] = []
    children = Children()
    monkeypatch.setattr(children, "run", lambda command, **_: commands.append(command) or 0)
    (share, *_) = task_scores.TASKS[name].epochs
    run = Run(name, share, "elmo", 3)
    task_scores._write_configs(tmp_path / name, name)
    assert task_scores._train(run, tmp_path, "original", children) == 0
    arguments = commands[0]
    overrides = [arguments[at + 1] for at, word in enumerate(arguments) if word == "-o"]
    components.load()
    config = Config.load(Path(arguments[4]), overrides=overrides)
    problems = parse.check(Experiment, config.raw, source=config.source).problems
    assert {problem.path.rpartition(".")[2] for problem in problems} <= {"pretrained_file"}
    assert config.raw["train_fraction"] == share
