"""The stages that check something, on a processor."""

from __future__ import annotations

import json
import sys

import gpu
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
            "there is no stage 'lossses'; choose from graph, losses, medium, rate, waiting",
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
