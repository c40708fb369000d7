"""Scores of a model on some data."""

from __future__ import annotations

import signal
import weakref
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from typing import Any

import pytest
import torch

from elmo_framework.data.data_loader import BatchSource, BucketDataLoader, Rank, SourceContext
from elmo_framework.training import evaluator as module
from elmo_framework.training.evaluator import Evaluator, autocast, metric_problem
from elmo_framework.training.interrupt import Interrupt, StopRequestedError
from elmo_framework.training.process_group import ProcessGroup
from tests.unit.training.toy import ToyBatch, ToyModel, collate


class Watched(ToyBatch):
    """A batch that supports weak references, to count the batches in memory."""


@pytest.fixture
def model() -> ToyModel:
    torch.manual_seed(0)
    return ToyModel()


def source() -> BatchSource[ToyBatch]:
    context = SourceContext(collate, lambda number: 1, seed=0, is_training=False)
    return BucketDataLoader(batch_size=2).source([x / 10 for x in range(20)], context)


def evaluator_of(batches: BatchSource[Any]) -> Evaluator:
    return Evaluator(batches, group=ProcessGroup(), device=torch.device("cpu"))


def test_scores_cover_the_whole_data(model: ToyModel) -> None:
    scores = evaluator_of(source()).scores(model)
    inputs = torch.arange(20) / 10
    expected, state = [], 0.0
    model.eval()
    with torch.no_grad():
        for part in inputs.split(2):
            outputs = model.network(part[:, None]).squeeze(1)
            state = 0.5 * state + float(outputs.mean())
            expected.append(float(((outputs + 0.01 * state - (3 * part - 1)) ** 2).mean()))
    assert scores["loss"] == pytest.approx(sum(expected) / len(expected), rel=1e-5)


def test_sanity_check_makes_every_batch_but_stores_two(
    model: ToyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = source()
    made: list[weakref.ref[Watched]] = []
    most = 0

    def watched() -> Iterator[Watched]:
        nonlocal most
        for _ in range(10):
            batch = Watched(torch.ones(2), torch.ones(2))
            made.append(weakref.ref(batch))
            most = max(most, sum(reference() is not None for reference in made))
            yield batch
            del batch

    monkeypatch.setattr(batches, "batches", watched)
    evaluator_of(batches).sanity_check(model)
    assert len(made) == 10
    assert most <= 3


def test_sanity_check_accepts_a_process_without_batches(model: ToyModel) -> None:
    context = SourceContext(collate, lambda number: 1, seed=0, is_training=False, rank=Rank(1, 2))
    evaluator_of(BucketDataLoader(batch_size=9).source([0.5], context)).sanity_check(model)


def test_evaluation_restores_carried_state(model: ToyModel) -> None:
    fresh = evaluator_of(source()).scores(model)
    model.load_carried_state({"carried": torch.tensor(50.0)})
    assert evaluator_of(source()).scores(model) == fresh
    assert model.carried == 50


class OneOfThree(ProcessGroup):
    """The first of three processes, the others of which have sums of 1."""

    def gather(self, value: Any) -> list[Any]:
        return [value, *[dict.fromkeys(value, 1.0)] * 2]


def test_sums_include_all_processes(model: ToyModel) -> None:
    group = OneOfThree(Rank(0, 3))
    sums = Evaluator(source(), group=group, device=torch.device("cpu")).sums(model)
    alone = evaluator_of(source()).sums(model)
    assert sums == {name: value + 2 for name, value in alone.items()}


def test_evaluation_restores_training_mode(model: ToyModel) -> None:
    for is_training in (True, False):
        model.train(is_training)
        evaluator_of(source()).scores(model)
        assert model.training == is_training


class Scored(ToyModel):
    """Has scores of both signs, and one whose sign only its author knows."""

    def scores(self, sums: Mapping[str, float]) -> dict[str, float]:
        return dict.fromkeys(("loss", "accuracy", "f1-measure-overall", "own"), 0.0)


@pytest.mark.parametrize(
    "metric", ["-loss", "+accuracy", "+f1-measure-overall", "+f1-measure-PER", "+own", "-own"]
)
def test_metric_with_the_right_sign_is_accepted(metric: str) -> None:
    assert metric_problem(metric, Scored()) is None


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        ("+loss", "'+loss' would keep the worst weights: smaller is better; write '-loss'"),
        ("-accuracy", "larger is better; write '+accuracy'"),
        ("+acuracy", "'+acuracy' is not a score of this model"),
        ("+f1-measure-ovrall", "Did you mean 'f1-measure-overall'?"),
    ],
)
def test_metric_with_the_wrong_sign_is_reported(metric: str, message: str) -> None:
    assert message in (metric_problem(metric, Scored()) or "")


class Looking(ProcessGroup):
    """One of two processes, the other of which has more batches and may be asked to stop.

    Attributes:
        looks: what this process told the other.
    """

    def __init__(self, *others: tuple[str | None, bool]) -> None:
        super().__init__(Rank(0, 2))
        self.others, self.looks = iter(others), list[Any]()

    def gather(self, value: Any) -> list[Any]:
        self.looks.append(value)
        return [value, next(self.others)]


def numbers_read(device: str, group: ProcessGroup, num_batches: int) -> Iterator[int]:
    """The numbers of the batches that an evaluation reads."""
    batches = source()
    batches.batches = lambda: iter(range(num_batches))  # type: ignore[method-assign]
    evaluator = Evaluator(batches, group=group, device=torch.device(device))
    return evaluator._batches(Interrupt())


@pytest.mark.parametrize(("device", "size"), [("cpu", 1), ("cuda", 20)])
def test_processes_synchronize_between_batches(device: str, size: int) -> None:
    group = Looking(*[(None, False)] * 5, (None, True))
    assert list(numbers_read(device, group, 2 * size)) == list(range(2 * size))
    assert group.looks == [(None, False)] * 3 + [(None, True)] * 3


def test_stop_request_of_another_process_stops_this_one() -> None:
    read = numbers_read("cpu", Looking((None, False), ("SIGTERM", False)), 5)
    assert next(read) == 0
    with pytest.raises(StopRequestedError, match="SIGTERM"):
        next(read)


def test_single_process_can_stop_after_each_batch() -> None:
    interrupt = Interrupt()
    evaluator = Evaluator(source(), group=ProcessGroup(), device=torch.device("cuda"))
    batches = evaluator._batches(interrupt)
    next(batches)
    interrupt.request(signal.SIGINT)
    with pytest.raises(StopRequestedError, match="SIGINT"):
        next(batches)


@pytest.mark.parametrize(
    ("precision", "has_bfloat16", "expected"),
    [
        ("float32", True, torch.float32),
        ("bfloat16", False, torch.bfloat16),
        ("auto", True, torch.bfloat16),
        ("auto", False, torch.float32),
    ],
)
def test_auto_is_bfloat16_where_the_device_has_it(
    precision: str, has_bfloat16: bool, expected: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_has_bfloat16", lambda device: has_bfloat16)
    with autocast(torch.device("cpu"), precision):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == expected
        assert torch.get_float32_matmul_precision() == "highest"


def test_a_cpu_has_no_automatic_bfloat16() -> None:
    with autocast(torch.device("cpu"), "auto"):
        assert not torch.is_autocast_enabled("cpu")


def test_other_products_of_a_gpu_are_tf32_in_bfloat16_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.torch, "autocast", lambda *arguments, **options: nullcontext())
    for precision, expected in (("bfloat16", "high"), ("float32", "highest")):
        with autocast(torch.device("cuda"), precision):
            assert torch.get_float32_matmul_precision() == expected
        assert torch.get_float32_matmul_precision() == "highest"
