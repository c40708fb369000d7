"""Two processes on one machine: sums, gradients, and a position of each."""

from __future__ import annotations

import os
import platform
import socket
import sys
from datetime import timedelta
from pathlib import Path

import pytest
import torch
import torch.multiprocessing as multiprocessing
from torch import nn

from elmo_framework.data.source import Share
from elmo_framework.training import process_group as processes
from elmo_framework.training.process_group import (
    Peer,
    ProcessGroup,
    choose_device,
    ended_peers,
    process_group,
)


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


class JoinedError(Exception):
    pass


def test_others_wait_for_hours_while_the_first_counts_the_words_of_a_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def join(backend: str, *, timeout: timedelta) -> None:
        assert (backend, timeout >= timedelta(hours=2)) == ("gloo", True)
        raise JoinedError

    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setattr(processes.dist, "init_process_group", join)
    with pytest.raises(JoinedError), process_group(torch.device("cpu")):
        pass


def test_the_cpu_can_be_asked_for() -> None:
    assert choose_device("cpu") == torch.device("cpu")


def test_processes_that_have_ended_are_found_whether_their_parent_knows_or_not() -> None:
    alive, waited = Peer(0, platform.node(), os.getpid()), ended_process(is_waited_for=True)
    zombie, elsewhere = ended_process(is_waited_for=False), Peer(3, "another", waited.pid)
    assert ended_peers([alive, waited, elsewhere]) == [waited]
    assert ended_peers([alive, zombie]) == [zombie]


def ended_process(*, is_waited_for: bool) -> Peer:
    child = os.posix_spawn(sys.executable, [sys.executable, "-S", "-c", ""], os.environ)
    if is_waited_for:
        os.waitpid(child, 0)
    return Peer(1 if is_waited_for else 2, platform.node(), child)


def test_an_error_of_a_process_itself_is_not_laid_on_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(processes, "_SECONDS_TO_END", 0.1)
    assert ended_peers([Peer(0, platform.node(), os.getpid())]) == []
