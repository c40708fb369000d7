"""A run that was stopped or killed goes on and ends as if nothing had happened."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from safetensors.torch import load_file

from elmo_framework.commands.main import main
from tests.experiment.jobs import (
    PRETRAINING,
    ROOT,
    arguments,
    evaluations,
    tagging_with,
    train,
)

PRETRAIN, NER = "experiments/pretrain/demo.jsonnet", "experiments/ner/elmo.jsonnet"
LITTLE = {"trainer.num_epochs": 1, "trainer.checkpointer": {"save_every": {"steps": 3}}}


def same_weights(one: Path, other: Path) -> bool:
    first, second = (load_file(run / "weights.safetensors") for run in (one, other))
    return first.keys() == second.keys() and all(first[n].equal(second[n]) for n in first)


def interrupted_by(name: str, step: int, changes: dict[str, Any]) -> dict[str, Any]:
    """The same job with an observer that sends a signal after a step."""
    observer = {"type": "signal_once", "step": step, "name": name}
    return {**changes, "trainer.callbacks": ["tensorboard", observer]}


def start_process(config: str, directory: Path, changes: dict[str, Any]) -> int:
    """Run `elmo train` in a process of its own; return its exit code, -9 when it was killed."""
    command = [sys.executable, "-m", "elmo_framework", *arguments(config, directory, changes)]
    done = subprocess.run(
        [*command, "--include-package", "tests.experiment.jobs"],
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=False,
    )
    return done.returncode


Changes = Callable[[Path], dict[str, Any]]
JOBS: dict[str, tuple[str, Changes, int]] = {
    "bilm": (PRETRAIN, lambda bilm: {**PRETRAINING, **LITTLE}, 22),
    "tagger": (NER, lambda bilm: tagging_with(bilm, **{**LITTLE, "trainer.num_epochs": 3}), 14),
}


@pytest.mark.slow
@pytest.mark.parametrize("job", JOBS)
def test_a_killed_run_ends_as_an_uninterrupted_one(job: str, bilm: Path, tmp_path: Path) -> None:
    config, changes, num_steps = JOBS[job]
    step = random.randint(1, num_steps)
    killed = interrupted_by("SIGKILL", step, changes(bilm))
    package = ("--include-package", "tests.experiment.jobs")
    assert start_process(config, tmp_path / "killed", killed) == -9, f"not killed at step {step}"
    assert train(config, tmp_path / "killed", killed, "--recover", *package) == 0

    (tmp_path / "whole-signalled").touch()
    assert train(config, tmp_path / "whole", killed, *package) == 0
    assert same_weights(tmp_path / "killed", tmp_path / "whole"), f"killed at step {step}"
    assert evaluations(tmp_path / "killed") == evaluations(tmp_path / "whole")


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_stopped_run_ends_as_an_uninterrupted_one(
    job: str, name: str, bilm: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config, changes, _ = JOBS[job]
    stopped = interrupted_by(name, 5, changes(bilm))
    assert train(config, tmp_path / "stopped", stopped) == 130
    assert f"stopped by {name} after step 5; a checkpoint is written" in capsys.readouterr().err
    assert train(config, tmp_path / "stopped", stopped, "--recover") == 0

    (tmp_path / "whole-signalled").touch()
    assert train(config, tmp_path / "whole", stopped) == 0
    assert same_weights(tmp_path / "stopped", tmp_path / "whole")
    assert evaluations(tmp_path / "stopped") == evaluations(tmp_path / "whole")


def test_recovering_a_finished_run_changes_nothing(tagger: Path, bilm: Path) -> None:
    before = (tagger / "weights.safetensors").read_bytes()
    assert train(NER, tagger, tagging_with(bilm), "--recover") == 0
    assert (tagger / "weights.safetensors").read_bytes() == before


def test_recovery_needs_the_same_config(
    tagger: Path, bilm: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changed = tagging_with(bilm, **{"trainer.num_epochs": 9, "model.dropout": 0.25})
    assert train(NER, tagger, changed, "--recover") == 2
    assert capsys.readouterr().err == (
        f"error: {tagger}: --recover needs the configuration that the run began with; "
        "it differs in\n"
        "  model.dropout: 0.5 -> 0.25\n"
        "  trainer.num_epochs: 4 -> 9\n"
    )


def test_recovery_needs_the_same_data(
    bilm: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "train.txt"
    data.write_text("Anna B-PER\nleft O\n\nIt O\nrained O\n")
    changes = tagging_with(bilm, train_data_path=str(data), **{"trainer.num_epochs": 1})
    changes |= {"validation_data_path": None, "trainer.patience": None}
    assert train(NER, tmp_path / "run", changes) == 0
    data.write_text("Anna B-PER\nstayed O\n")
    assert train(NER, tmp_path / "run", changes, "--recover") == 2
    assert "the data or the biLM has changed since" in capsys.readouterr().err


def test_a_second_process_in_the_same_folder_is_refused(
    tagger: Path, bilm: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with FileLock(tagger / ".lock"):
        assert train(NER, tagger, tagging_with(bilm), "--recover") == 2
    assert "another process is training here" in capsys.readouterr().err


def test_a_folder_that_is_in_use_is_refused_without_a_flag(
    tagger: Path, bilm: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(NER, tagger, tagging_with(bilm)) == 2
    assert "the folder is not empty; pass --recover" in capsys.readouterr().err


def test_force_removes_a_run_and_nothing_else(
    bilm: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters/dear.txt").write_text("...")
    little = tagging_with(bilm, **{"trainer.num_epochs": 1})
    assert train(NER, tmp_path / "letters", little, "--force") == 2
    assert "it holds something else (dear.txt, ...)" in capsys.readouterr().err
    assert (tmp_path / "letters/dear.txt").exists()
    assert train(NER, tmp_path / "run", little) == 0
    assert train(NER, tmp_path / "run", little, "--force") == 0


def test_another_bilm_in_the_place_of_the_old_one_is_refused(
    bilm: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import shutil

    shutil.copytree(bilm / "bilm", tmp_path / "bilm")
    little = tagging_with(tmp_path / "bilm", **{"trainer.num_epochs": 1})
    assert train(NER, tmp_path / "run", little) == 0
    options = tmp_path / "bilm/options.json"
    options.write_text(options.read_text() + "\n")
    assert main(["predict", str(tmp_path / "run"), str(ROOT / "README.md")]) == 2
    assert "is another biLM now than the one that this run was trained on" in (
        capsys.readouterr().err
    )
