"""The stages that check something, on a processor."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import gpu
import gpu_parts
import gpu_stages
import numpy as np
import pytest

from elmo_framework.kernels.operators import PLAIN

DEMO = ["--size", "demo", "--device", "cpu", "--steps", "2"]


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["gpu.py", *words])
    return gpu.main()


def test_losses_are_compared_with_both_softmaxes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gpu, "SYNC_INTERVAL", 2)
    assert run(monkeypatch, "losses", "waiting", *DEMO) == 0
    full, narrow_full, sampled, narrow, waiting = reported(capsys)
    for each in (full, narrow_full, sampled, narrow):
        assert each["is_sampling"] is (each["softmax"] == "sampled")
    assert full["largest_difference"] == sampled["largest_difference"] == 0
    for each in (narrow_full, narrow):
        assert each["precision"] == "bfloat16"
        assert 0 < each["largest_difference"] < 2e-2
    assert full["vocabulary"] == sampled["vocabulary"] > 512
    assert waiting["tokens_per_s"] > 0


def reported(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    lines = capsys.readouterr().out.splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]


def test_kernels_and_groups_are_compared_and_parts_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("_NUM_FIRST", "_NUM_MEASURED"):
        monkeypatch.setattr(gpu_parts, name, 1)
    assert run(monkeypatch, "kernels", "graph", "parts", "group", *DEMO) == 0
    *kernels, graph, parts, group = reported(capsys)
    assert {each["kernel"] for each in kernels} == PLAIN.keys()
    assert all(each["largest_difference"] == 0 for each in kernels)
    assert graph["recorded"] == 0
    assert parts["parts_ms"]["products"] > 0
    assert parts["update_ms"] > 0
    assert group["largest_differences"]["float32"] < 1e-6
    assert set(group["recorded"].values()) == {0}


def test_kernels_that_differ_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = PLAIN["lstm_step"]
    monkeypatch.setitem(PLAIN, "lstm_step", lambda *each: tuple(2 * one for one in plain(*each)))
    assert run(monkeypatch, "kernels", *DEMO) == 1


def test_time_of_overlapping_kernels_counts_once() -> None:
    assert gpu_parts._covered([(5, 6), (0, 2), (1, 3), (1, 2)]) == 4


@pytest.mark.parametrize(("difference", "expected"), [(2e-3, 1), (5e-4, 0), (3e-3, 1)])
def test_losses_that_differ_fail(
    monkeypatch: pytest.MonkeyPatch, difference: float, expected: int
) -> None:
    losses = iter([[1.0], [1.0 + difference], [1.0 + 10 * difference]] * 2)
    monkeypatch.setattr(gpu, "_losses", lambda trainer, num_steps: next(losses))
    assert run(monkeypatch, "losses", *DEMO) == expected


def test_vectors_and_losses_of_a_head_are_compared(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "embedding", "head", *DEMO) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    embedding, head = map(json.loads, lines)
    assert embedding["largest_difference"] == head["largest_difference"] == 0
    assert embedding["sentences"] == 985
    assert head["updates_per_s"] > 0


def test_vectors_that_differ_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = iter([np.array([1.0, 2.0]), np.array([1.0, 2.1]), np.array([0.0])])
    monkeypatch.setattr(gpu_stages, "_embedded", lambda *_: (next(vectors), 1.0))
    assert run(monkeypatch, "embedding", *DEMO) == 1


def test_a_killed_process_is_resumed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # The last process dies after the first checkpoint; --recover finishes, or does not.
    for recovered, expected in [("metrics.json", 0), ("nothing", 1)]:
        monkeypatch.setattr(
            gpu_stages,
            "_launched",
            lambda _, command, result=recovered: launched(command, result),
        )
        assert run(monkeypatch, "processes", *DEMO) == expected
        (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
        figures = json.loads(line)
        assert figures["exit_of_killed"] == 1
        assert figures["exit_of_recovered"] == 0


def launched(command: list[str], result: str) -> subprocess.Popen[bytes]:
    """Start what stands for `torchrun`: it fails when its one worker is killed."""
    run = Path(command[command.index("-s") + 1])
    if "--recover" in command:
        return subprocess.Popen(["bash", "-c", f"echo > {run / result}"])
    run.mkdir()
    script = f"sleep 60 & echo > {run}/started; wait $!; exit $(($? == 137))"
    process = subprocess.Popen(["bash", "-c", script])
    while not (run / "started").exists():  # the worker is killed once there is a checkpoint
        time.sleep(0.01)
    (run / "checkpoints/step-1").mkdir(parents=True)
    return process


@pytest.mark.parametrize(("words", "minutes"), [([], (0.1, 0.1)), (["--minutes", "3"], (3, 0.1))])
def test_demo_trains_for_seconds_by_default(
    monkeypatch: pytest.MonkeyPatch, words: list[str], minutes: tuple[float, float]
) -> None:
    monkeypatch.setattr(sys, "argv", ["gpu.py", *DEMO, *words])
    arguments = gpu._arguments()
    assert (arguments.minutes, arguments.medium_minutes) == minutes


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["lossses", *DEMO],
            "there is no stage 'lossses'; choose from embedding, graph, group, head, kernels, "
            "losses, medium, parts, processes, rate, waiting",
        ),
        (["rate"], "--size original needs --train and --validation"),
        (
            ["rate", "--size", "small", "--train", "x"],
            "--size small needs --train and --validation",
        ),
    ],
)
def test_invalid_measurements_are_refused(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    message: str,
) -> None:
    with pytest.raises(SystemExit):
        run(monkeypatch, *words)
    assert message in capsys.readouterr().err
