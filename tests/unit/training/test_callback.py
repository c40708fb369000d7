"""Logs written during training."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from elmo_framework.errors import DataError
from elmo_framework.training.callback import RunLog, TensorBoard
from elmo_framework.training.state import StepReport, TrainingState


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
        update_seconds=0.5,
        title="a batch",
    )


def scalars(directory: Path) -> dict[str, list[tuple[int, float]]]:
    events = EventAccumulator(str(directory / "log"))
    events.Reload()
    return {
        name: [(event.step, round(event.value, 4)) for event in events.Scalars(name)]
        for name in events.Tags()["scalars"]
    }


def test_the_log_has_a_line_for_each_evaluation(tmp_path: Path) -> None:
    log = RunLog(tmp_path)
    log.start(TrainingState())
    log.scores(TrainingState(step=3, seconds=1.5), {"f1": 0.5})
    log.scores(TrainingState(step=6, seconds=2.5), {"f1": 0.7})
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert lines == [
        {"step": 3, "seconds": 1.5, "f1": 0.5},
        {"step": 6, "seconds": 2.5, "f1": 0.7},
    ]


def test_log_drops_lines_after_the_checkpoint(tmp_path: Path) -> None:
    for name in ("metrics.jsonl", "steps.jsonl"):
        (tmp_path / name).write_text('{"step": 3}\n{"step": 6}\n{"step": 9}\n{"ste')
    RunLog(tmp_path).start(TrainingState(step=6, scores=(0.1, 0.2)))
    for name in ("metrics.jsonl", "steps.jsonl"):
        assert (tmp_path / name).read_text() == '{"step": 3}\n{"step": 6}\n'


def test_repeated_first_evaluation_is_logged_once(
    tmp_path: Path,
) -> None:
    for _ in ("killed before its checkpoint", "again"):
        log = RunLog(tmp_path)
        log.start(TrainingState())
        log.scores(TrainingState(scores=(0.5,)), {"f1": 0.5})
    assert len((tmp_path / "metrics.jsonl").read_text().splitlines()) == 1


def test_the_log_has_a_line_for_every_twentieth_update(tmp_path: Path) -> None:
    log = RunLog(tmp_path)
    log.start(TrainingState())
    for step in range(1, 50):
        log.step(report(step))
    lines = [json.loads(line) for line in (tmp_path / "steps.jsonl").read_text().splitlines()]
    metrics = {"loss": 2.0, "gradient_norm": 3.0, "learning_rate": 0.1, "tokens_per_second": 100.0}
    assert lines == [
        {"step": 20, "seconds": 10.0, **metrics},
        {"step": 40, "seconds": 20.0, **metrics},
    ]


def test_logged_rate_excludes_evaluations(tmp_path: Path) -> None:
    log, board = RunLog(tmp_path), TensorBoard(tmp_path, summary_interval=20)
    for callback in (log, board):
        callback.start(TrainingState())
        callback.step(report(1))
        callback.step(replace(report(20), seconds=101.0))
        callback.close()
    (line,) = (tmp_path / "steps.jsonl").read_text().splitlines()
    assert json.loads(line)["tokens_per_second"] == 100
    assert scalars(tmp_path)["training/tokens_per_second"] == [(20, 100.0)]


def test_full_disk_error_names_the_log(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left on device") as caught:
        RunLog(tmp_path).scores(TrainingState(), {"f1": 0.5})
    assert caught.value.filename == str(path)


def test_tensorboard_gets_steps_and_evaluations(tmp_path: Path) -> None:
    board = TensorBoard(tmp_path, summary_interval=2)
    board.start(TrainingState())
    for step in (1, 2, 3, 4):
        board.step(report(step, loss=step))
    board.scores(TrainingState(step=4), {"f1": 0.5, "embedder.elmo.mix.gamma": 1.25})
    board.close()
    assert scalars(tmp_path) == {
        "training/loss": [(2, 2.0), (4, 4.0)],
        "training/gradient_norm": [(2, 3.0), (4, 3.0)],
        "training/learning_rate": [(2, 0.1), (4, 0.1)],
        "training/tokens_per_second": [(2, 100.0), (4, 100.0)],
        "evaluation/f1": [(4, 0.5)],
        "embedder.elmo.mix/gamma": [(4, 1.25)],
    }


def test_tensorboard_drops_steps_after_the_checkpoint(tmp_path: Path) -> None:
    first = TensorBoard(tmp_path, summary_interval=1)
    first.start(TrainingState())
    for step in (1, 2, 3):
        first.step(report(step, loss=1))
    first.close()
    second = TensorBoard(tmp_path, summary_interval=1)
    second.start(TrainingState(step=2, seconds=1.0))
    second.step(report(3, loss=5))
    second.close()
    assert scalars(tmp_path)["training/loss"] == [(1, 1.0), (2, 1.0), (3, 5.0)]


def test_damaged_log_is_not_overwritten(tmp_path: Path) -> None:
    for name in ("metrics.jsonl", "steps.jsonl"):
        content = b'{"step": 1}\n\xff\xfe\n{"step": 2}\n'
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError, match=rf"{name}:2: this line is damaged; remove it$"):
            RunLog(tmp_path).start(TrainingState(step=2, scores=(0.1, 0.2)))
        assert (tmp_path / name).read_bytes() == content
        (tmp_path / name).write_bytes(b'{"step": 1}\n{"st\xff')
        RunLog(tmp_path).start(TrainingState(step=2, scores=(0.1, 0.2)))
        assert (tmp_path / name).read_text() == '{"step": 1}\n'
