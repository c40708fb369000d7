"""What is written while a model trains."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from elmo_framework.training.observer import RunLog, TensorBoard
from elmo_framework.training.progress import Progress, StepReport
from elmo_framework.training.step_figures import StepFigures


def report(step: int, *, loss: float = 2.0) -> StepReport:
    return StepReport(
        step=step,
        epoch=0,
        is_epoch_end=False,
        loss=torch.tensor(loss),
        gradient_norm=torch.tensor(3.0),
        learning_rate=0.1,
        num_tokens=50,
        seconds=step / 2,
        title="a batch",
    )


def scalars(directory: Path) -> dict[str, list[tuple[int, float]]]:
    events = EventAccumulator(str(directory / "log"))
    events.Reload()
    return {
        name: [(held.step, round(held.value, 4)) for held in events.Scalars(name)]
        for name in events.Tags()["scalars"]
    }


def test_the_log_has_a_line_for_each_evaluation(tmp_path: Path) -> None:
    log = RunLog(tmp_path)
    log.start(Progress())
    log.scores(Progress(step=3, seconds=1.5), {"f1": 0.5})
    log.scores(Progress(step=6, seconds=2.5), {"f1": 0.7})
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert lines == [
        {"step": 3, "seconds": 1.5, "f1": 0.5},
        {"step": 6, "seconds": 2.5, "f1": 0.7},
    ]


def test_the_log_is_cut_back_to_where_training_goes_on(tmp_path: Path) -> None:
    for name in ("metrics.jsonl", "steps.jsonl"):
        (tmp_path / name).write_text('{"step": 3}\n{"step": 6}\n{"step": 9}\n{"ste')
    RunLog(tmp_path).start(Progress(step=6, scores=(0.1, 0.2)))
    for name in ("metrics.jsonl", "steps.jsonl"):
        assert (tmp_path / name).read_text() == '{"step": 3}\n{"step": 6}\n'


def test_an_evaluation_before_the_first_update_that_comes_again_has_one_line(
    tmp_path: Path,
) -> None:
    for _ in ("killed before its checkpoint", "again"):
        log = RunLog(tmp_path)
        log.start(Progress())
        log.scores(Progress(scores=(0.5,)), {"f1": 0.5})
    assert len((tmp_path / "metrics.jsonl").read_text().splitlines()) == 1


def test_the_log_has_a_line_for_every_twentieth_update(tmp_path: Path) -> None:
    log = RunLog(tmp_path)
    log.start(Progress())
    for step in range(1, 50):
        log.step(report(step))
    lines = [json.loads(line) for line in (tmp_path / "steps.jsonl").read_text().splitlines()]
    figures = {"loss": 2.0, "gradient_norm": 3.0, "learning_rate": 0.1, "tokens_per_second": 100.0}
    assert lines == [
        {"step": 20, "seconds": 10.0, **figures},
        {"step": 40, "seconds": 20.0, **figures},
    ]


def test_the_time_of_an_evaluation_is_not_in_the_rate() -> None:
    figures = StepFigures(2)
    figures.start(0.0)
    assert figures.of(report(1)) is None
    figures.pass_over(100.5)
    found = figures.of(replace(report(2), seconds=101.0))
    assert found is not None
    assert found["tokens_per_second"] == 100


def test_tensorboard_gets_steps_and_evaluations(tmp_path: Path) -> None:
    board = TensorBoard(tmp_path, summary_interval=2)
    board.start(Progress())
    for step in (1, 2, 3, 4):
        board.step(report(step, loss=step))
    board.scores(Progress(step=4), {"f1": 0.5, "embedder.elmo.mix.gamma": 1.25})
    board.close()
    assert scalars(tmp_path) == {
        "training/loss": [(2, 2.0), (4, 4.0)],
        "training/gradient_norm": [(2, 3.0), (4, 3.0)],
        "training/learning_rate": [(2, 0.1), (4, 0.1)],
        "training/tokens_per_second": [(2, 100.0), (4, 100.0)],
        "evaluation/f1": [(4, 0.5)],
        "embedder.elmo.mix/gamma": [(4, 1.25)],
    }


def test_tensorboard_drops_what_came_after_the_checkpoint(tmp_path: Path) -> None:
    first = TensorBoard(tmp_path, summary_interval=1)
    first.start(Progress())
    for step in (1, 2, 3):
        first.step(report(step, loss=1))
    first.close()
    second = TensorBoard(tmp_path, summary_interval=1)
    second.start(Progress(step=2, seconds=1.0))
    second.step(report(3, loss=5))
    second.close()
    assert scalars(tmp_path)["training/loss"] == [(1, 1.0), (2, 1.0), (3, 5.0)]
