"""Estimates before training and after its first updates."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from elmo_framework.training.console import ResourceEstimate
from elmo_framework.training.state import StepReport, TrainingState
from tests.unit.training.toy import Toy

BYTES_OF_WEIGHTS = 4 * (2 * 4 + 4 + 1)


def estimated(directory: Path, capsys: pytest.CaptureFixture[str], **options: Any) -> list[str]:
    """Messages about updates that take a second each and read four tokens."""
    trainer = Toy(directory, **{"num_epochs": None, **options}).trainer
    estimate = ResourceEstimate(trainer)
    estimate.start(TrainingState())
    for step in range(1, min(trainer.num_steps or 40, 40) + 1):
        estimate.step(report(step))
    return capsys.readouterr().err.splitlines()


def report(step: int) -> StepReport:
    nothing = torch.zeros(())
    return StepReport(step, 0, False, nothing, nothing, 0.1, 4, float(step), 1.0, "")


@pytest.mark.parametrize(("optimizer", "num_moments"), [("adam", 2), ("adagrad", 1)])
def test_memory_counts_weights_gradients_and_optimizer_state(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], optimizer: str, num_moments: int
) -> None:
    (line,) = estimated(tmp_path, capsys, num_steps=30, optimizer={"type": optimizer, "lr": 0.01})
    assert line == (
        f"training 13 parameters; {BYTES_OF_WEIGHTS * (2 + num_moments)} bytes for weights, "
        "gradients and optimizer, plus the activations"
    )


@pytest.mark.parametrize(
    ("options", "left"),
    [
        ({"num_steps": 200}, "0:02:55"),
        ({"num_steps": 200, "max_minutes": 2}, "0:01:35"),
        ({"max_minutes": 10}, "0:09:35"),
    ],
)
def test_estimate_uses_the_first_limit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: dict[str, Any], left: str
) -> None:
    _, line = estimated(tmp_path, capsys, **options)
    assert line.startswith(f"at 4 tokens/s: {left} left, until ")
    assert line.endswith(", excluding evaluations and checkpoints")


def test_rate_excludes_warm_up_and_evaluations(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    estimate = ResourceEstimate(Toy(tmp_path, num_epochs=None, num_steps=200).trainer)
    estimate.start(TrainingState())
    for step in range(1, 26):
        slow, evaluated = 9.0 * (step <= 5), 100.0 * (step > 10)
        estimate.step(replace(report(step), seconds=step + evaluated, update_seconds=1 + slow))
    assert "at 4 tokens/s: 0:02:55 left" in capsys.readouterr().err


def test_short_training_has_no_estimate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert estimated(tmp_path, capsys, num_steps=25) == []
