"""The stages that check something, on a processor."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import gpu
import gpu_stages
import numpy as np
import pytest

DEMO = ["--size", "demo", "--device", "cpu", "--steps", "2"]


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["gpu.py", *words])
    return gpu.main()


def test_losses_are_compared_with_both_softmaxes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "losses", "waiting", *DEMO) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    full, sampled, waiting = map(json.loads, lines)
    assert [full["is_sampling"], sampled["is_sampling"]] == [False, True]
    assert full["largest_difference"] == sampled["largest_difference"] == 0
    assert full["vocabulary"] == sampled["vocabulary"] > 512
    assert waiting["tokens_per_s"] > 0


def test_losses_that_differ_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    losses = iter([[1.0], [1.0 + 2e-3]] * 2)
    monkeypatch.setattr(gpu, "_losses", lambda trainer, num_steps: next(losses))
    assert run(monkeypatch, "losses", *DEMO) == 1


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
    script = (
        f"echo > {run / result}"
        if "--recover" in command
        else f"mkdir -p {run}/checkpoints/step-1; sleep 60 & wait $!; exit $(($? == 137))"
    )
    return subprocess.Popen(["bash", "-c", script])


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
            "there is no stage 'lossses'; choose from embedding, graph, head, losses, medium, "
            "processes, rate, waiting",
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
