import json
from pathlib import Path

import pytest
import task_scores
from task_scores import Run

from elmo_framework import components
from elmo_framework.common import build
from elmo_framework.common.config import Config
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


@pytest.mark.parametrize(
    ("bilm", "share", "message"),
    [
        ("mini", 0.1, None),
        ("original", 0.1, r"embedders\.elmo\.bilm was 'mini', not 'original'"),
        ("mini", 0.01, r"train_fraction was 0\.1, not 0\.01"),
    ],
)
def test_a_finished_run_counts_for_what_it_was_trained_with(
    bilm: str, share: float, message: str | None, tmp_path: Path
) -> None:
    run = finished(tmp_path, Run("ner", share, "elmo", 1), 0.5)
    changes = task_scores._changes(run._replace(fraction=0.1), "mini")
    overrides = [f"{key}={json.dumps(value)}" for key, value in changes.items()]
    trained = Config.load(task_scores._EXPERIMENTS / "ner/elmo.jsonnet", overrides=overrides)
    (tmp_path / run.folder / "config.json").write_text(json.dumps(trained.raw))
    if message is None:
        task_scores._require_same(run, tmp_path, bilm)
    else:
        with pytest.raises(SystemExit, match=rf"{run.folder}: .*{message}"):
            task_scores._require_same(run, tmp_path, bilm)


@pytest.mark.parametrize("name", task_scores.TASKS)
def test_every_run_has_a_configuration_without_errors_but_missing_data(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[list[str]] = []

    class Finished:
        returncode = 0

    monkeypatch.setattr(
        task_scores.subprocess, "run", lambda command, **_: commands.append(command) or Finished()
    )
    (share, *_) = task_scores.TASKS[name].epochs
    run = Run(name, share, "elmo", 3)
    task_scores._write_configs(tmp_path / name, name)
    assert task_scores._train(run, tmp_path, "original") == 0
    arguments = commands[0]
    overrides = [arguments[at + 1] for at, word in enumerate(arguments) if word == "-o"]
    components.load()
    config = Config.load(Path(arguments[4]), overrides=overrides)
    problems = build.check(Experiment, config.raw, source=config.source).problems
    assert {problem.path.rpartition(".")[2] for problem in problems} <= {"pretrained_file"}
    assert config.raw["train_fraction"] == share
