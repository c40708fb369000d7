"""The loop: limits, accumulation, clipping, patience, and going on exactly where it stopped."""

from __future__ import annotations

import json
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from elmo_framework.common.errors import RunError, StoppedError
from elmo_framework.data.source import Share
from elmo_framework.training.observer import Observer
from elmo_framework.training.process_group import ProcessGroup
from elmo_framework.training.progress import StepReport
from elmo_framework.training.trainer import grouped
from tests.unit.training.toy import Toy


class Recorder(Observer):
    """Keeps every report, and can ask for a stop."""

    def __init__(self) -> None:
        self.reports: list[StepReport] = []
        self.toy: Toy | None = None
        self.stop_at: int | None = None

    def step(self, report: StepReport) -> None:
        self.reports.append(report)
        if self.toy is not None and report.step == self.stop_at:
            self.toy.interrupt.request(signal.SIGTERM)

    @property
    def losses(self) -> list[float]:
        return [float(report.loss) for report in self.reports]


def final_weights(toy: Toy) -> dict[str, Any]:
    return {name: value.tolist() for name, value in toy.model.state_dict().items()}


def figures(directory: Path) -> list[dict[str, float]]:
    """The lines of the log without the time, which is never the same."""
    lines = [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]
    return [{name: value for name, value in line.items() if name != "seconds"} for line in lines]


def test_training_lowers_the_loss(tmp_path: Path) -> None:
    result = Toy(tmp_path, num_epochs=30).run()
    assert result.progress.scores[-1] > -0.2


@pytest.mark.parametrize(
    ("options", "steps"),
    [
        ({"num_epochs": 2}, 12),
        ({"num_epochs": None, "num_steps": 5}, 5),
        ({"num_epochs": 2, "num_steps": 50}, 12),
        ({"num_epochs": 3, "num_gradient_accumulation_steps": 4}, 6),
        ({"num_epochs": None, "max_minutes": 1e-9}, 1),
    ],
)
def test_training_ends_at_the_first_limit(
    tmp_path: Path, options: dict[str, Any], steps: int
) -> None:
    assert Toy(tmp_path, **options).run().progress.step == steps


def test_the_last_step_is_scored_and_saved_when_no_evaluation_is_due(tmp_path: Path) -> None:
    toy = Toy(tmp_path, num_epochs=None, num_steps=5)
    assert toy.run().progress.best_step == 5
    assert list(toy.checkpointer.folders()) == [5]


def test_accumulated_gradients_equal_those_of_the_joint_batch(tmp_path: Path) -> None:
    recorder = Recorder()
    Toy(
        tmp_path,
        observers=[recorder],
        num_epochs=1,
        num_gradient_accumulation_steps=2,
        optimizer={"type": "sgd", "lr": 0.01},
    ).run()
    assert [report.num_tokens for report in recorder.reports] == [8, 8, 5]


def test_the_tokens_of_an_update_are_those_of_all_processes(tmp_path: Path) -> None:
    trainer = Toy(tmp_path).trainer
    alone = next(trainer.steps()).num_tokens
    trainer.group = ProcessGroup(Share(rank=0, world_size=3))
    assert next(trainer.steps()).num_tokens == 3 * alone


def test_evaluations_come_when_they_are_due(tmp_path: Path) -> None:
    Toy(tmp_path, num_epochs=2, evaluate_every={"steps": 5, "epochs": 1}).run()
    assert [line["step"] for line in figures(tmp_path)] == [5, 6, 10, 12]


def test_gradients_are_clipped_by_norm_and_then_by_value(tmp_path: Path) -> None:
    before = Toy(tmp_path / "a", num_steps=1, optimizer={"type": "sgd", "lr": 1.0})
    start = {name: value.clone() for name, value in before.model.state_dict().items()}
    clipped = Toy(
        tmp_path / "b",
        num_steps=1,
        grad_norm=1e-3,
        grad_clipping=2e-4,
        optimizer={"type": "sgd", "lr": 1.0},
    )
    clipped.run()
    changes = torch.cat(
        [(value - start[name]).flatten() for name, value in clipped.model.state_dict().items()]
    )
    assert changes.abs().max() == pytest.approx(2e-4, rel=1e-2)
    assert changes.norm() < 1e-3


def test_the_gradient_norm_is_that_before_clipping(tmp_path: Path) -> None:
    free, clipped = Recorder(), Recorder()
    Toy(tmp_path / "a", observers=[free], num_steps=1).run()
    Toy(tmp_path / "b", observers=[clipped], num_steps=1, grad_norm=1e-3).run()
    assert float(free.reports[0].gradient_norm) == float(clipped.reports[0].gradient_norm) > 1


def test_training_stops_when_patience_ends(tmp_path: Path) -> None:
    toy = Toy(tmp_path, num_epochs=50, patience=2, optimizer={"type": "sgd", "lr": 1e-12})
    result = toy.run()
    assert result.progress.step == 3 * 6
    assert "no better score" in result.reason


def test_a_run_that_ran_out_of_patience_stays_at_its_end(tmp_path: Path) -> None:
    options: dict[str, Any] = {"num_epochs": 50, "patience": 2, "validation_metric": "+loss"}
    ended = Toy(tmp_path, **options).run().progress
    assert Toy(tmp_path, **options).run().progress == ended


def test_a_score_that_is_no_number_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toy = Toy(tmp_path)
    monkeypatch.setattr(toy.model, "scores", lambda sums: {"loss": float("nan")})
    with pytest.raises(RunError, match="loss on the validation data is nan at step 6"):
        toy.run()
    assert toy.checkpointer.folders() == {}


def test_a_gradient_that_is_no_number_is_not_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toy = Toy(tmp_path)
    monkeypatch.setattr(toy.trainer, "_update", lambda: torch.tensor(float("inf")))
    with pytest.raises(RunError, match="the gradient norm is inf at step 1 "):
        toy.run()


def test_epochs_are_counted_by_the_data_where_they_differ(tmp_path: Path) -> None:
    recorder = Recorder()
    toy = Toy(tmp_path, observers=[recorder], num_epochs=3)
    plans = iter([3, 5, 2])
    source: Any = toy.trainer.source

    def planned(epoch: int) -> list[list[int]]:
        return [[0]] * next(plans)

    source._plan = planned(0)
    source._planned = planned
    toy.run()
    assert [report.epoch for report in recorder.reports] == [0] * 3 + [1] * 5 + [2] * 2
    assert [r.step for r in recorder.reports if r.is_epoch_end] == [3, 8, 10]


def test_the_checkpoint_of_the_best_score_is_kept(tmp_path: Path) -> None:
    toy = Toy(tmp_path, num_epochs=6, validation_metric="+loss")
    progress = toy.run().progress
    assert progress.best_step == 6
    assert sorted(toy.checkpointer.folders()) == [6, 30, 36]


def test_an_unknown_validation_metric_names_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(RunError) as caught:
        Toy(tmp_path, validation_metric="-los").run()
    assert str(caught.value) == (
        "trainer.validation_metric: '-los' is no score of this model; allowed: loss. "
        "Did you mean 'loss'?"
    )


def test_a_loss_that_is_no_number_names_the_batch(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"the loss is nan at step 1 .* the first"):
        Toy(tmp_path, examples=[float("nan")] * 5).run()


def test_a_loss_that_is_no_number_leaves_the_last_checkpoint_alone(tmp_path: Path) -> None:
    toy = Toy(tmp_path, num_steps=6)
    toy.run()
    again = Toy(tmp_path, examples=[float("inf")] * 21)
    with pytest.raises(RunError):
        again.run()
    assert sorted(again.checkpointer.folders()) == [6]


@pytest.mark.parametrize("stop_at", range(1, 23))
def test_a_stopped_run_goes_on_bit_for_bit(tmp_path: Path, stop_at: int) -> None:
    options: dict[str, Any] = {
        "moving_average": {"decay": 0.9},
        "learning_rate_scheduler": {"type": "linear_with_warmup", "warmup_steps": 4},
        "grad_norm": 1.0,
    }
    whole, first, second = Recorder(), Recorder(), Recorder()
    uninterrupted = Toy(tmp_path / "whole", observers=[whole], **options)
    expected = uninterrupted.run()

    stopped = Toy(tmp_path / "parts", observers=[first], **options)
    first.toy, first.stop_at = stopped, stop_at
    with pytest.raises(StoppedError, match=f"stopped by SIGTERM after step {stop_at};"):
        stopped.run()
    resumed = Toy(tmp_path / "parts", observers=[second], **options)
    result = resumed.run()

    assert first.losses + second.losses == whole.losses
    assert final_weights(resumed) == final_weights(uninterrupted)
    assert figures(tmp_path / "parts") == figures(tmp_path / "whole")
    same_time = {"seconds": 0.0, "last_evaluation": 0.0}
    assert replace(result.progress, **same_time) == replace(expected.progress, **same_time)


def test_the_moving_average_is_what_is_scored_and_kept(tmp_path: Path) -> None:
    toy = Toy(tmp_path, num_epochs=1, moving_average={"decay": 0.5})
    progress = toy.run().progress
    kept = toy.checkpointer.best_weights(progress)
    assert all(kept[name].equal(value) for name, value in toy.trainer.average.state_dict().items())
    assert not kept["network.0.weight"].equal(toy.model.state_dict()["network.0.weight"])


def test_grouped_gives_what_is_left_at_the_end() -> None:
    assert list(grouped(range(5), 2)) == [[0, 1], [2, 3], [4]]


def test_the_clock_that_runs_out_between_two_looks_loses_no_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toy = Toy(tmp_path, num_epochs=None, max_minutes=1, evaluate_every={"steps": 100})
    looks: list[int] = []

    def passed(minutes: float, *, since: float) -> bool:
        looks.append(toy.trainer.progress.step)
        return toy.trainer.progress.step >= 6  # the end of the first epoch

    monkeypatch.setattr(toy.trainer, "_has_passed", passed)
    toy.run()
    assert looks == [1, 2, 3, 4, 5, 6]
    assert list(toy.checkpointer.folders()) == [6]
