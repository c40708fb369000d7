"""Recordings that fail: training continues as it was. What a replay computes is tested in whole."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from torch import Tensor, nn
from torch.autograd.graph import get_gradient_edge

from elmo_framework.data.batch import StaticBatch
from elmo_framework.errors import RunError
from elmo_framework.training.cuda_graph import Outputs, RecordedUpdate, _CudaGraphs
from elmo_framework.training.process_group import process_group
from elmo_framework.training.sparse_gradients import RowAdagrad
from elmo_framework.training.state import TrainingState
from elmo_framework.training.update import Update, UpdateResult
from tests.two_processes import in_two_processes
from tests.unit.training.toy import CPU, Toy


@dataclass(frozen=True)
class Numbers(StaticBatch):
    numbers: Tensor
    form: Hashable = None

    def packed(self) -> Numbers:
        return self

    def unpacked(self, numbers: Tensor) -> Numbers:
        return replace(self, numbers=numbers)


class Sums:
    """Stands in for an update: its loss is the sum of the numbers of a batch."""

    def __init__(self) -> None:
        self.device, self.group = CPU, SimpleNamespace(is_alone=True)
        self.options = SimpleNamespace(num_gradient_accumulation_steps=1, unfreezing=None)
        self.optimizer = RowAdagrad([nn.Parameter(torch.zeros(2))])
        self.model = SimpleNamespace(
            has_static_steps=True, carried_state=dict, load_carried_state=lambda state: None
        )

    def __call__(self, batches: list[Numbers], progress: TrainingState) -> UpdateResult:
        loss = batches[0].numbers.sum()
        return UpdateResult(loss, torch.zeros(()), None)


class Replayed:
    def __init__(self, function: Callable[[], Outputs]) -> None:
        self._function, self.outputs = function, function()

    def replay(self) -> None:
        self.outputs = self._function()


@pytest.mark.parametrize(
    "error", [RuntimeError("operation not permitted"), RunError("step 5: no memory")]
)
def test_a_recording_that_fails_releases_the_others(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    num_recorded = 0

    def record(function: Callable[[], Outputs]) -> Replayed:
        nonlocal num_recorded
        num_recorded += 1
        if num_recorded > 1:
            raise error
        return Replayed(function)

    update = RecordedUpdate(cast(Update, Sums()), record)
    losses = []
    for form, expected in (("first", 1), ("second", 0)):
        for number in range(6):
            batch = Numbers(torch.tensor([number, 1]), form)
            losses.append(int(update([batch], TrainingState()).loss))
        assert update.num_recorded == expected
    assert losses == [*range(1, 7)] * 2
    assert num_recorded == 2
    assert caplog.text.count(f"which is slower: {error}") == 1


def test_after_a_recording_that_fails_the_stream_is_that_of_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    streams = ["usual"]

    @contextmanager
    def stream(name: str) -> Iterator[None]:
        before, streams[0] = streams[0], name
        try:
            yield
        finally:
            streams[0] = before

    class Graph:
        """As PyTorch's: if it cannot end, the stream remains."""

        def __enter__(self) -> None:
            streams[0] = "recorded"

        def __exit__(self, *_: object) -> None:
            raise RuntimeError("operation failed due to a previous error during capture")

    class Generator:
        def clone_state(self) -> str:
            return "a copy that records nothing"

        def graphsafe_set_state(self, state: str) -> None:
            states.append(state)

    def fail() -> Outputs:
        raise RuntimeError("no memory")

    states: list[str] = []
    for name, function in {
        "graph_pool_handle": tuple,
        "CUDAGraph": object,
        "graph": lambda *_, **__: Graph(),
        "stream": stream,
        "current_stream": lambda: streams[0],
        "default_generators": [Generator()],
        "current_device": int,
    }.items():
        monkeypatch.setattr(torch.cuda, name, function)
    with pytest.raises(RuntimeError, match="during capture"):
        _CudaGraphs()(lambda: ())
    with pytest.raises(RuntimeError, match="no memory"):
        _CudaGraphs()(fail)
    assert streams == ["usual"]
    assert states == ["a copy that records nothing"] * 2


@pytest.mark.parametrize(("value", "is_recorded"), [("0", False), ("1", True), (None, True)])
def test_an_environment_variable_switches_recordings_off(
    monkeypatch: pytest.MonkeyPatch, value: str | None, is_recorded: bool
) -> None:
    monkeypatch.delenv("ELMO_CUDA_GRAPHS", raising=False)
    if value is not None:
        monkeypatch.setenv("ELMO_CUDA_GRAPHS", value)
    sums = Sums()
    sums.device = torch.device("cuda")
    assert (RecordedUpdate(cast(Update, sums))._record is not None) == is_recorded


def average_afterwards(rank: int, directory: Path) -> None:
    with process_group(CPU, advice="") as group:
        examples = [float(number + rank) for number in range(4)]
        toy = Toy(directory / f"{rank}", group=group, examples=examples, num_epochs=1)
        are_kept = [has_node(each) for each in toy.model.parameters()]
        toy.trainer.update.average_afterwards()
        next(toy.trainer.steps())
        are_kept_now = [has_node(each) for each in toy.model.parameters()]
        torch.save((are_kept, are_kept_now, toy.model.state_dict()), directory / f"{rank}.pt")


def has_node(parameter: nn.Parameter) -> bool:
    """Whether something keeps the node that accumulates the gradients of a parameter."""
    get_gradient_edge(parameter).node.metadata["is kept"] = True
    return "is kept" in get_gradient_edge(parameter).node.metadata


def test_nodes_of_ddp_are_not_recorded(tmp_path: Path) -> None:
    assert in_two_processes(partial(average_afterwards, directory=tmp_path)) == [0, 0]
    results: list[Any] = [torch.load(tmp_path / f"{rank}.pt") for rank in range(2)]
    for before, after, weights in results:
        assert all(before)
        assert not any(after)
        for name, tensor in results[0][2].items():
            assert torch.equal(weights[name], tensor)
