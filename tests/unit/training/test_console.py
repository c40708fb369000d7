"""Progress bar and evaluation lines."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from elmo_framework import console as terminal
from elmo_framework.training.console import Console
from elmo_framework.training.state import TrainingState
from tests.unit.training.test_estimate import report
from tests.unit.training.toy import Toy


def test_console_shows_the_rate_and_the_scores(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    console = Console(Toy(tmp_path, num_steps=20).trainer)
    console.start(TrainingState())
    for step in range(1, 11):
        console.step(replace(report(step), seconds=step + 100.0 * (step > 5)))
        if step == 5:
            console.scores(TrainingState(step=5, seconds=55.0), {"loss": 0.25, "count": 3.0})
    console.close()
    first, *_, scores, last = capsys.readouterr().err.splitlines()
    assert first == "training: 20 steps ..."
    assert scores == "step 5: loss 0.25"
    assert last.startswith("training: 10/20 steps (50 %), ")
    assert last.endswith("; epoch 1, loss 0, 4 tokens/s")


def test_resumed_training_shows_the_remaining_steps(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    console = Console(Toy(tmp_path, num_steps=20).trainer)
    console.start(TrainingState(step=15, seconds=15.0))
    console.close()
    assert capsys.readouterr().err.startswith("training (resumed at step 15): 5 steps ...")


@pytest.mark.parametrize("first", [0, 4])
def test_remaining_time_excludes_the_first_evaluation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    now = 0.0
    monkeypatch.setattr(terminal.time, "monotonic", lambda: now)
    console = Console(Toy(tmp_path, num_steps=first + 20).trainer)
    console.start(TrainingState(step=first))
    now = 3600.0
    console.scores(TrainingState(step=first), {"loss": 0.25})
    now = 3610.0
    console.step(report(first + 1))
    assert "0:03:10 left" in capsys.readouterr().err
    console.close()
