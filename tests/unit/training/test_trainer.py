"""The loop: limits, accumulation, clipping, patience, and exact resume."""

from __future__ import annotations

import copy
import json
import math
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch import nn

from elmo_framework.config.parse import parse
from elmo_framework.errors import RunError, StoppedError
from elmo_framework.model.part import Part
from elmo_framework.model.regularizer import Regularizer
from elmo_framework.training import trainer as trainer_module
from elmo_framework.training.callback import Callback
from elmo_framework.training.checkpointer import Checkpointer, Snapshot
from elmo_framework.training.process_group import process_group
from elmo_framework.training.state import StepReport, TrainingState
from elmo_framework.training.update import UpdateResult
from tests.two_processes import in_two_processes
from tests.unit.training.toy import Toy


class Recorder(Callback):
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

    @property
    def rates(self) -> list[float]:
        return [report.learning_rate for report in self.reports]


def stopped_after(step: int, directory: Path, **options: Any) -> Recorder:
    """Train until a stop is requested; return the recorded reports."""
    recorder = Recorder()
    recorder.toy, recorder.stop_at = Toy(directory, callbacks=[recorder], **options), step
    with pytest.raises(StoppedError, match=f"Stopped by SIGTERM after step {step};"):
        recorder.toy.run()
    return recorder


def ended(directory: Path, **options: Any) -> Recorder:
    """Train to the end; return the recorded reports."""
    recorder = Recorder()
    recorder.toy = Toy(directory, callbacks=[recorder], **options)
    recorder.toy.run()
    return recorder


def final_weights(toy: Toy) -> dict[str, Any]:
    return {name: value.tolist() for name, value in toy.model.state_dict().items()}


def read_metrics(directory: Path) -> list[dict[str, float]]:
    """The lines of the log without the time, which is never the same."""
    lines = [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]
    return [{name: value for name, value in line.items() if name != "seconds"} for line in lines]


def test_training_lowers_the_loss(tmp_path: Path) -> None:
    result = Toy(tmp_path, num_epochs=30).run()
    assert result.progress.scores[-1] > -0.2


@pytest.mark.parametrize(
    ("options", "steps", "reason"),
    [
        ({"num_epochs": 2}, 12, "reached num_epochs"),
        ({"num_epochs": None, "num_steps": 5}, 5, "reached num_steps"),
        ({"num_epochs": 2, "num_steps": 50}, 12, "reached num_epochs"),
        ({"num_epochs": 3, "num_gradient_accumulation_steps": 4}, 6, "reached num_epochs"),
        ({"num_epochs": None, "max_minutes": 1e-9}, 1, "reached max_minutes"),
    ],
)
def test_training_ends_at_the_first_limit(
    tmp_path: Path, options: dict[str, Any], steps: int, reason: str
) -> None:
    result = Toy(tmp_path, **options).run()
    assert (result.progress.step, result.reason) == (steps, reason)


def test_last_step_is_always_evaluated_and_saved(tmp_path: Path) -> None:
    toy = Toy(tmp_path, num_epochs=None, num_steps=5)
    assert toy.run().progress.best_step == 5
    assert list(toy.checkpointer.folders()) == [5]


def test_accumulated_gradients_equal_those_of_the_joint_batch(tmp_path: Path) -> None:
    sgd = {"type": "sgd", "lr": 0.1}
    toy = Toy(tmp_path, num_steps=1, num_gradient_accumulation_steps=2, optimizer=sgd)
    toy.model.memory = 0.0
    toy.model.network[1] = nn.Dropout(0.0)
    network = copy.deepcopy(toy.model.network)
    batches = list(islice(Toy(tmp_path).trainer.source.batches(), 2))
    inputs, targets = (
        torch.cat([getattr(b, name) for b in batches]) for name in ("inputs", "targets")
    )
    (network(inputs[:, None]).squeeze(1) - targets).square().mean().backward()
    toy.run()
    for own, joint in zip(toy.model.network.parameters(), network.parameters(), strict=True):
        assert joint.grad is not None
        torch.testing.assert_close(own.detach(), joint.detach() - 0.1 * joint.grad)


def test_tokens_of_an_update_include_all_its_batches(tmp_path: Path) -> None:
    recorder = ended(tmp_path, num_epochs=1, num_gradient_accumulation_steps=2)
    assert [report.num_tokens for report in recorder.reports] == [8, 8, 5]


def test_tokens_of_an_update_include_all_processes(tmp_path: Path) -> None:
    alone, three = (Toy(tmp_path, num_processes=number).trainer for number in (1, 3))
    assert next(three.steps()).num_tokens == 3 * next(alone.steps()).num_tokens


def test_evaluation_intervals_are_respected(tmp_path: Path) -> None:
    Toy(tmp_path, num_epochs=2, evaluate_every={"steps": 5, "epochs": 1}).run()
    assert [line["step"] for line in read_metrics(tmp_path)] == [5, 6, 10, 12]


def test_intervals_in_minutes_are_respected(tmp_path: Path) -> None:
    at_once, never = {"minutes": 1e-9}, {"steps": 100}
    Toy(tmp_path / "evaluated", num_steps=3, evaluate_every=at_once).run()
    assert [line["step"] for line in read_metrics(tmp_path / "evaluated")] == [1, 2, 3]
    keeping = {"save_every": at_once, "keep_most_recent_by_count": 5}
    saved = Toy(tmp_path / "saved", num_steps=3, evaluate_every=never, checkpointer=keeping)
    saved.run()
    assert sorted(saved.checkpointer.folders()) == [1, 2, 3]
    assert [line["step"] for line in read_metrics(tmp_path / "saved")] == [3]


def test_without_validation_data_the_last_weights_are_best(tmp_path: Path) -> None:
    toy = Toy(tmp_path, num_epochs=1, evaluate_at_start=True)
    toy.trainer.evaluator = None
    progress = toy.run().progress
    assert progress.best_step is None
    assert sorted(toy.checkpointer.folders()) == [6]
    best = toy.checkpointer.best_weights(progress)
    assert all(best[name].equal(weights) for name, weights in toy.model.state_dict().items())


def test_update_time_excludes_evaluation_and_saving(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]

    def taking(seconds: float, function: Callable[..., Any]) -> Callable[..., Any]:
        def slower(*arguments: Any) -> Any:
            clock[0] += seconds
            return function(*arguments)

        return slower

    monkeypatch.setattr(trainer_module.time, "monotonic", lambda: clock[0])
    due: dict[str, Any] = {
        "evaluate_at_start": True,
        "evaluate_every": {"steps": 3},
        "checkpointer": {"save_every": {"steps": 2}},
    }
    recorder = Recorder()
    toy = Toy(tmp_path, callbacks=[recorder], num_steps=5, **due)
    monkeypatch.setattr(toy.trainer, "_recorded_update", taking(1, toy.trainer._recorded_update))
    monkeypatch.setattr(recorder, "step", taking(2, recorder.step))
    monkeypatch.setattr(toy.checkpointer, "save", taking(100, toy.checkpointer.save))
    assert toy.trainer.evaluator is not None
    scores = taking(1000, toy.trainer.evaluator.scores)
    monkeypatch.setattr(toy.trainer.evaluator, "scores", scores)
    toy.run()
    assert [report.update_seconds for report in recorder.reports] == [1, 3, 3, 3, 3]
    assert [report.seconds for report in recorder.reports] == [1101, 1104, 1207, 2310, 2413]


def test_the_first_evaluation_may_be_the_best(tmp_path: Path) -> None:
    toy = Toy(tmp_path, num_epochs=3, evaluate_at_start=True, validation_metric="+loss")
    progress = toy.run().progress
    assert TrainingState.from_json(progress.to_json()) == progress
    assert (progress.best_step, sorted(toy.checkpointer.folders())) == (0, [0, 12, 18])


def test_earlier_version_progress_has_no_best_step() -> None:
    written = {**TrainingState(step=5).to_json(), "best_step": 0}
    del written["step_offset"]
    assert TrainingState.from_json(written) == TrainingState(step=5)


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


def weight_changes(toy: Toy) -> torch.Tensor:
    """Train; return how far each weight has moved, as one vector."""
    start = [parameter.detach().clone() for parameter in toy.model.parameters()]
    toy.run()
    pairs = zip(toy.model.parameters(), start, strict=True)
    return torch.cat([(now.detach() - before).flatten() for now, before in pairs])


def test_gradients_are_scaled_to_the_largest_norm(tmp_path: Path) -> None:
    sgd = {"type": "sgd", "lr": 1.0}
    plain = weight_changes(Toy(tmp_path / "a", num_steps=1, optimizer=sgd))
    clipped = weight_changes(Toy(tmp_path / "b", num_steps=1, optimizer=sgd, grad_norm=0.5))
    assert plain.norm() > 1
    torch.testing.assert_close(clipped, plain / plain.norm() * 0.5, atol=1e-6, rtol=1e-5)


class Decay(Part):
    """Adds half the square of each parameter of a module to the loss."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.decayed = [list(module.parameters())]

    def penalty(self) -> torch.Tensor:
        return sum((p.square().sum() / 2 for p in self.decayed[0]), torch.zeros(()))


def one_update(num_accumulated: int) -> dict[str, Any]:
    """The options of a single update by plain gradient descent."""
    return {
        "num_steps": 1,
        "num_gradient_accumulation_steps": num_accumulated,
        "optimizer": {"type": "sgd", "lr": 0.1},
    }


@pytest.mark.parametrize("num_accumulated", [1, 2])
def test_penalties_are_added_once_per_update(tmp_path: Path, num_accumulated: int) -> None:
    options = one_update(num_accumulated)
    plain, penalized = Recorder(), Recorder()
    change = weight_changes(Toy(tmp_path / "a", callbacks=[plain], **options))
    toy = Toy(tmp_path / "b", callbacks=[penalized], **options)
    toy.model.add_module("decay", Decay(toy.model.network))
    start = torch.cat([parameter.detach().flatten() for parameter in toy.model.parameters()])
    torch.testing.assert_close(weight_changes(toy), change - 0.1 * start, atol=1e-6, rtol=1e-5)
    assert penalized.losses == plain.losses


@pytest.mark.parametrize("num_accumulated", [1, 2])
def test_regularization_changes_gradients_but_not_scores(
    tmp_path: Path, num_accumulated: int
) -> None:
    options = one_update(num_accumulated)
    plain, penalized = Recorder(), Recorder()
    unregularized = Toy(tmp_path / "a", callbacks=[plain], **options)
    change = weight_changes(unregularized)
    toy = Toy(tmp_path / "b", callbacks=[penalized], **options)
    l2 = parse(Regularizer, {"type": "l2", "alpha": 0.5}, source="toy")
    toy.model.post_init(regularizer=[(".*weight", l2)])
    weights = [p.detach().clone() for n, p in toy.model.named_parameters() if "weight" in n]
    decay = torch.cat(
        [
            (p.detach() if "weight" in name else torch.zeros_like(p)).flatten()
            for name, p in toy.model.named_parameters()
        ]
    )
    torch.testing.assert_close(weight_changes(toy), change - 0.1 * decay, atol=1e-6, rtol=1e-5)
    assert penalized.losses == plain.losses
    (report,) = penalized.reports
    assert float(report.penalty) == pytest.approx(sum(float(w.square().sum()) / 2 for w in weights))
    assert plain.reports[0].penalty is None
    scores = toy.trainer.progress.last_scores
    toy.model.post_init()
    assert toy.trainer.evaluator.scores(toy.model) == scores


def test_reported_gradient_norm_precedes_clipping(tmp_path: Path) -> None:
    plain, clipped = Recorder(), Recorder()
    Toy(tmp_path / "a", callbacks=[plain], num_steps=1).run()
    Toy(tmp_path / "b", callbacks=[clipped], num_steps=1, grad_norm=1e-3).run()
    assert float(plain.reports[0].gradient_norm) == float(clipped.reports[0].gradient_norm) > 1


def test_early_stopping_when_patience_is_exhausted(tmp_path: Path) -> None:
    toy = Toy(tmp_path, num_epochs=50, patience=2, optimizer={"type": "sgd", "lr": 1e-12})
    result = toy.run()
    assert result.progress.step == 3 * 6
    assert result.reason == "early stopping: patience exhausted"


def test_early_stopped_run_is_not_resumed(tmp_path: Path) -> None:
    options: dict[str, Any] = {"num_epochs": 50, "patience": 2, "validation_metric": "+loss"}
    before = Toy(tmp_path, **options).run().progress
    assert Toy(tmp_path, **options).run().progress == before


def test_non_finite_score_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toy = Toy(tmp_path)
    monkeypatch.setattr(toy.model, "scores", lambda sums: {"loss": float("nan")})
    with pytest.raises(RunError, match="loss on the validation data is nan at step 6; try"):
        toy.run()
    assert toy.checkpointer.folders() == {}


@pytest.mark.parametrize(("loss", "cause"), [(1.0, "`score` of the metric"), (math.nan, "try a")])
def test_a_nan_score_with_a_finite_loss_blames_the_metric(
    loss: float, cause: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toy = Toy(tmp_path, validation_metric="+ece")
    monkeypatch.setattr(toy.model, "scores", lambda sums: {"loss": loss, "ece": math.nan})
    with pytest.raises(RunError, match=f"ece on the validation data is nan at step 6; {cause}"):
        toy.run()


def test_non_finite_gradient_is_not_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toy = Toy(tmp_path)
    result = UpdateResult(torch.zeros(()), torch.tensor(float("inf")), None)
    monkeypatch.setattr(toy.trainer, "_recorded_update", lambda *_: result)
    with pytest.raises(RunError, match="the gradient norm is inf at step 1 "):
        toy.run()


def test_epochs_are_counted_by_the_data_where_they_differ(tmp_path: Path) -> None:
    recorder = Recorder()
    toy = Toy(tmp_path, callbacks=[recorder], num_epochs=3)
    plans = iter([3, 5, 2])
    source: Any = toy.trainer.source

    def planned(epoch: int) -> list[list[int]]:
        return [[0]] * next(plans)

    source._plan = planned(0)
    source._planned = planned
    toy.run()
    assert [report.epoch for report in recorder.reports] == [0] * 3 + [1] * 5 + [2] * 2
    assert [r.step for r in recorder.reports if r.is_epoch_end] == [3, 8, 10]


def test_the_checkpoint_of_the_best_score_is_not_deleted(tmp_path: Path) -> None:
    toy = Toy(tmp_path, num_epochs=6, validation_metric="+loss")
    progress = toy.run().progress
    assert progress.best_step == 6
    assert sorted(toy.checkpointer.folders()) == [6, 30, 36]


def test_unknown_validation_metric_lists_allowed_ones(tmp_path: Path) -> None:
    with pytest.raises(RunError) as caught:
        Toy(tmp_path, validation_metric="-los").run()
    assert str(caught.value) == (
        "trainer.validation_metric: '-los' is not a score of this model; choose from loss. "
        "Did you mean 'loss'?"
    )


def test_non_finite_loss_error_names_the_batch(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"the loss is nan at step 1 .* the first"):
        Toy(tmp_path, examples=[float("nan")] * 5).run()


def test_non_finite_loss_preserves_the_last_checkpoint(tmp_path: Path) -> None:
    toy = Toy(tmp_path, num_steps=6)
    toy.run()
    again = Toy(tmp_path, examples=[float("inf")] * 21)
    with pytest.raises(RunError):
        again.run()
    assert sorted(again.checkpointer.folders()) == [6]


def test_checkpoint_of_another_model_is_rejected(tmp_path: Path) -> None:
    Toy(tmp_path, num_steps=3).run()
    again = Toy(tmp_path, num_steps=6)
    again.model.network.append(nn.Linear(1, 1))
    with pytest.raises(RunError) as caught:
        again.run()
    assert str(caught.value) == (
        f"{tmp_path}/checkpoints/step-000000003/model.safetensors: these weights are of another "
        "model than the configuration and the vocabulary make: missing: network.3.weight, "
        "network.3.bias"
    )


TO_BE_STOPPED: dict[str, Any] = {
    "moving_average": {"decay": 0.9},
    "learning_rate_scheduler": {"type": "linear_with_warmup", "warmup_steps": 4},
    "grad_norm": 1.0,
}


class Whole(NamedTuple):
    """A training that nothing interrupted."""

    toy: Toy
    losses: list[float]
    metrics: list[dict[str, float]]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    directory = tmp_path_factory.mktemp("whole")
    recorder = ended(directory, **TO_BE_STOPPED)
    assert recorder.toy is not None
    return Whole(recorder.toy, recorder.losses, read_metrics(directory))


@pytest.mark.parametrize("stop_at", range(1, 23))
def test_resume_is_bit_identical(tmp_path: Path, whole: Whole, stop_at: int) -> None:
    first = stopped_after(stop_at, tmp_path, **TO_BE_STOPPED)
    second = ended(tmp_path, **TO_BE_STOPPED)
    assert second.toy is not None
    assert first.losses + second.losses == whole.losses
    assert final_weights(second.toy) == final_weights(whole.toy)
    assert read_metrics(tmp_path) == whole.metrics
    same_time = {"seconds": 0.0, "last_evaluation": 0.0}
    resumed, expected = second.toy.trainer.progress, whole.toy.trainer.progress
    assert replace(resumed, **same_time) == replace(expected, **same_time)


@pytest.mark.parametrize("stop_at", [5, 6])
def test_stop_does_not_write_a_checkpoint_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop_at: int
) -> None:
    saved: list[int] = []
    save = Checkpointer.save

    def noting(self: Checkpointer, snapshot: Snapshot) -> None:
        saved.append(snapshot.progress.step)
        save(self, snapshot)

    monkeypatch.setattr(Checkpointer, "save", noting)
    stopped_after(stop_at, tmp_path, evaluate_every={"steps": 3})
    assert saved == [3, stop_at]


def test_processes_stop_after_any_update_on_the_cpu(tmp_path: Path) -> None:
    stopped_after(2, tmp_path, num_processes=2)


EVALUATED: dict[str, Any] = {
    "moving_average": {"decay": 0.9},
    "learning_rate_scheduler": {"type": "reduce_on_plateau", "factor": 0.5, "patience": 0},
    "evaluate_at_start": True,
    "evaluate_every": {"steps": 4, "epochs": 1},
    "patience": 5,
}
NUM_BATCHES = 3
"""In the validation data of the toy."""


class StopInEvaluation:
    """Asks a toy to stop after a batch of an evaluation; its evaluations draw random numbers.

    Attributes:
        num_batches: evaluated since the last update.
    """

    def __init__(self, toy: Toy, *, step: int | None = None, batch: int | None = None) -> None:
        self.toy, self.place, self.num_batches = toy, (step, batch), 0
        toy.model.register_forward_hook(self.after_batch)

    def after_batch(self, model: nn.Module, *_: object) -> None:
        if model.training:
            self.num_batches = 0
            return
        torch.rand(())
        self.num_batches += 1
        if (self.toy.trainer.progress.step, self.num_batches) == self.place:
            self.toy.interrupt.request(signal.SIGTERM)


class Evaluated(NamedTuple):
    """What is left of a training in which evaluations draw random numbers."""

    losses: list[float]
    rates: list[float]
    weights: list[dict[str, Any]]
    metrics: list[dict[str, float]]
    checkpoints: list[int]
    progress: TrainingState

    @classmethod
    def of(cls, directory: Path, recorders: Sequence[Recorder]) -> Evaluated:
        toy = recorders[-1].toy
        assert toy is not None
        progress = replace(toy.trainer.progress, seconds=0.0, last_evaluation=0.0)
        best = toy.checkpointer.best_weights(progress)
        return cls(
            [loss for recorder in recorders for loss in recorder.losses],
            [rate for recorder in recorders for rate in recorder.rates],
            [final_weights(toy), {name: value.tolist() for name, value in best.items()}],
            read_metrics(directory),
            sorted(toy.checkpointer.folders()),
            progress,
        )


def evaluated(directory: Path, **options: Any) -> Recorder:
    """Train to the end with random numbers drawn in evaluations."""
    recorder = Recorder()
    recorder.toy = Toy(directory, callbacks=[recorder], **EVALUATED, **options)
    StopInEvaluation(recorder.toy)
    recorder.toy.run()
    return recorder


def stopped_in_evaluation(directory: Path, *, step: int, batch: int, **options: Any) -> Recorder:
    """Train until a stop after a batch of an evaluation."""
    recorder = Recorder()
    recorder.toy = Toy(directory, callbacks=[recorder], **EVALUATED, **options)
    stop = StopInEvaluation(recorder.toy, step=step, batch=batch)
    message = f"Stopped by SIGTERM after step {step}; .* the evaluation is repeated then"
    with pytest.raises(StoppedError, match=message):
        recorder.toy.run()
    assert stop.num_batches == batch, "the evaluation continued"
    return recorder


@pytest.fixture(scope="module", params=["-loss", "+loss"])
def undisturbed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Evaluated, dict[str, Any]]:
    """A training that nothing stopped, whose best step is the last or the first, and its options.

    The latter runs out of patience at step 16.
    """
    directory, options = tmp_path_factory.mktemp("whole"), {"validation_metric": request.param}
    whole = Evaluated.of(directory, [evaluated(directory, **options)])
    ends = {"-loss": (24, 24), "+loss": (16, 0)}
    assert (whole.progress.step, whole.progress.best_step) == ends[request.param]
    return whole, options


@pytest.mark.parametrize("batch", [1, NUM_BATCHES])
@pytest.mark.parametrize("step", [0, 4, 6, 12, 16])
def test_stop_during_evaluation_does_not_change_the_result(
    tmp_path: Path, undisturbed: tuple[Evaluated, dict[str, Any]], step: int, batch: int
) -> None:
    expected, options = undisturbed
    first = stopped_in_evaluation(tmp_path, step=step, batch=batch, **options)
    assert first.toy is not None
    assert max(first.toy.checkpointer.folders()) == step
    second = evaluated(tmp_path, **options)
    assert Evaluated.of(tmp_path, [first, second]) == expected


def test_an_evaluation_can_be_stopped_twice(
    tmp_path: Path, undisturbed: tuple[Evaluated, dict[str, Any]]
) -> None:
    expected, options = undisturbed
    recorders = [
        stopped_in_evaluation(tmp_path, step=step, batch=1, **options) for step in (6, 6, 8, 16)
    ]
    assert Evaluated.of(tmp_path, [*recorders, evaluated(tmp_path, **options)]) == expected


def test_the_last_evaluation_by_the_clock_is_repeated(tmp_path: Path) -> None:
    options: dict[str, Any] = {"num_epochs": None, "max_minutes": 1e-9}
    stopped_in_evaluation(tmp_path, step=1, batch=1, **options)
    assert read_metrics(tmp_path)[-1]["step"] == 0
    recorder = evaluated(tmp_path, **options)
    assert recorder.losses == []
    assert [line["step"] for line in read_metrics(tmp_path)] == [0, 1]


def stop_one_of_two(rank: int, directory: Path) -> None:
    """What each of two processes does: the second, with fewer batches to evaluate, is stopped."""
    with process_group(torch.device("cpu"), advice="") as group:
        whole = evaluated(directory / "whole", group=group)
        first = Recorder()
        first.toy = Toy(directory / "parts", callbacks=[first], group=group, **EVALUATED)
        StopInEvaluation(first.toy, step=6, batch=1 if rank == 1 else None)
        with pytest.raises(StoppedError, match="Stopped by SIGTERM after step 6;"):
            first.toy.run()
        second = evaluated(directory / "parts", group=group)
        assert Evaluated.of(directory / "parts", [first, second]) == Evaluated.of(
            directory / "whole", [whole]
        )


def test_processes_stop_in_an_evaluation_together(tmp_path: Path) -> None:
    assert in_two_processes(partial(stop_one_of_two, directory=tmp_path)) == [0, 0]


def test_stop_request_precedes_a_due_evaluation(tmp_path: Path) -> None:
    recorder = Recorder()
    recorder.toy, recorder.stop_at = Toy(tmp_path, callbacks=[recorder]), 6
    stop = StopInEvaluation(recorder.toy)
    with pytest.raises(StoppedError, match=r"after step 6; .* the evaluation is repeated"):
        recorder.toy.run()
    assert stop.num_batches == 0


LINEAR = {"learning_rate_scheduler": {"type": "linear_with_warmup", "warmup_steps": 2}}


@pytest.mark.parametrize(
    ("before", "after", "step", "same"), [(2, 1, 7, 14), (2, 1, 6, 12), (1, 2, 8, 4), (1, 4, 23, 7)]
)
def test_other_number_of_processes_preserves_the_schedule(
    tmp_path: Path, before: int, after: int, step: int, same: int
) -> None:
    expected = ended(tmp_path / "whole", num_processes=after, **LINEAR).rates
    stopped_after(step, tmp_path / "parts", num_processes=before, **LINEAR)
    others = Recorder()
    toy = Toy(tmp_path / "parts", callbacks=[others], num_processes=after, **LINEAR)
    num_steps: list[int | None] = []
    others.start = lambda progress: num_steps.append(toy.trainer.num_steps)  # type: ignore[method-assign]
    toy.run()
    assert others.rates == expected[same:]
    assert num_steps == [toy.trainer.progress.step] == [step + len(expected) - same]


def test_schedule_position_survives_later_stops(tmp_path: Path) -> None:
    expected = ended(tmp_path / "whole", **LINEAR).rates
    stopped_after(7, tmp_path / "parts", num_processes=2, **LINEAR)
    first = stopped_after(10, tmp_path / "parts", **LINEAR)
    assert first.rates + ended(tmp_path / "parts", **LINEAR).rates == expected[14:]


@pytest.mark.parametrize(
    ("before", "after", "step", "limit"), [(2, 1, 4, 10), (1, 2, 8, 14), (1, 2, 8, 16)]
)
def test_num_steps_does_not_depend_on_the_number_of_processes(
    tmp_path: Path, before: int, after: int, step: int, limit: int
) -> None:
    limited = {**LINEAR, "num_steps": limit}
    expected = ended(tmp_path / "whole", **limited).rates
    stopped_after(step, tmp_path / "parts", num_processes=before, **limited)
    assert ended(tmp_path / "parts", num_processes=after, **limited).rates == expected[step:]


def test_moving_average_is_evaluated_and_saved(tmp_path: Path) -> None:
    toy = Toy(tmp_path, num_epochs=1, moving_average={"decay": 0.5})
    progress = toy.run().progress
    best = toy.checkpointer.best_weights(progress)
    assert all(best[name].equal(value) for name, value in toy.trainer.average.state_dict().items())
    assert not best["network.0.weight"].equal(toy.model.state_dict()["network.0.weight"])
    assert toy.trainer.evaluator is not None
    of_last = toy.trainer.evaluator.scores(toy.model)
    toy.model.load_state_dict(best)
    assert progress.best_scores == toy.trainer.evaluator.scores(toy.model) != of_last


def test_moving_average_includes_every_update(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Recorder()
    toy = Toy(tmp_path, callbacks=[recorder], num_steps=3, moving_average={"decay": 0.75})
    weight = toy.model.network[0].weight
    expected = [weight.detach().clone()]
    monkeypatch.setattr(
        recorder, "step", lambda report: expected.append(0.75 * expected[-1] + 0.25 * weight)
    )
    toy.run()
    assert len(expected) == 4
    torch.testing.assert_close(toy.trainer.average.state_dict()["network.0.weight"], expected[-1])


def test_max_minutes_between_synchronizations_loses_no_step(
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


@pytest.mark.parametrize(
    ("options", "moment", "advice"),
    [
        ({}, "step 1", "data_loader"),
        ({"evaluate_at_start": True}, "evaluation", "validation_data_loader"),
    ],
)
def test_a_batch_without_memory_is_named_with_its_size(
    tmp_path: Path, options: Mapping[str, Any], moment: str, advice: str
) -> None:
    toy = Toy(tmp_path, **options)

    def forward(batch: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. More.")

    toy.trainer.model.forward = forward  # type: ignore[assignment]
    expected = rf"^{moment}, on a batch of .* tokens .*2\.00 GiB\. More; lower {advice}\.batch_size"
    with pytest.raises(RunError, match=expected):
        toy.run()
