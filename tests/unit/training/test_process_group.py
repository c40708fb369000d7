"""Two processes on one machine: sums, gradients, and a position of each."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
import torch
import torch.multiprocessing as multiprocessing
from torch import nn

from elmo_framework.data.source import Share
from elmo_framework.training.process_group import ProcessGroup, choose_device, process_group


def free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port: int = held.getsockname()[1]
        return port


def work(rank: int, port: int, directory: Path) -> None:
    """What each of two processes does."""
    os.environ.update(
        RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port)
    )
    with process_group(torch.device("cpu")) as group:
        assert group.sum({"both": 1.0, f"only-{rank}": 2.0}) == {
            "both": 2.0,
            "only-0": 2.0,
            "only-1": 2.0,
        }
        assert group.first(rank) == 0
        assert group.is_first == (rank == 0)
        torch.manual_seed(0)
        model = nn.Linear(3, 1)
        trainable = group.trainable(model)
        rows = torch.arange(12.0).reshape(4, 3)[2 * rank : 2 * rank + 2]
        trainable(rows).square().mean().backward()
        assert model.weight.grad is not None
        torch.save(model.weight.grad, directory / f"{rank}.pt")
        group.wait()


@pytest.mark.slow
def test_two_processes_have_the_gradient_of_the_joint_batch(tmp_path: Path) -> None:
    multiprocessing.spawn(work, args=(free_port(), tmp_path), nprocs=2)
    torch.manual_seed(0)
    model = nn.Linear(3, 1)
    model(torch.arange(12.0).reshape(4, 3)).square().mean().backward()
    for rank in range(2):
        gradient = torch.load(tmp_path / f"{rank}.pt", weights_only=True)
        torch.testing.assert_close(gradient, model.weight.grad)


def test_a_process_alone_sums_nothing_but_its_own() -> None:
    group = ProcessGroup(Share())
    assert group.sum({"a": 1.0}) == {"a": 1.0}
    assert group.gather("x") == ["x"]
    model = nn.Linear(1, 1)
    assert group.trainable(model) is model


def test_the_cpu_can_be_asked_for() -> None:
    assert choose_device("cpu") == torch.device("cpu")
