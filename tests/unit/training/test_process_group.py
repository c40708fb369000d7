"""Two processes on one machine: sums, gradients, and a position of each."""

from __future__ import annotations

import os
import platform
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn

from elmo_framework.data.data_loader import Rank
from elmo_framework.errors import RunError, StoppedError
from elmo_framework.training import process_group as processes
from elmo_framework.training.process_group import (
    Peer,
    ProcessGroup,
    choose_device,
    ended_peers,
    local_gradients,
    process_group,
)
from tests.two_processes import in_two_processes

CPU = torch.device("cpu")
ROWS = torch.arange(12.0).reshape(4, 3)


def new_model() -> nn.Linear:
    torch.manual_seed(0)
    return nn.Linear(3, 1)


def gradient(model: nn.Linear, *losses: Callable[[], Tensor]) -> Tensor:
    for loss in losses:
        loss().backward()
    assert model.weight.grad is not None
    return model.weight.grad


def work(rank: int, directory: Path) -> None:
    """What each of two processes does."""
    with process_group(CPU, advice="") as group:
        assert group.sum({"both": 1.0, f"only-{rank}": 2.0}) == {
            "both": 2.0,
            "only-0": 2.0,
            "only-1": 2.0,
        }
        assert group.first(rank) == 0
        assert group.is_first == (rank == 0)
        assert group.gather_to_first(f"of {rank}") == (["of 0", "of 1"] if rank == 0 else [])
        model = new_model()
        trainable = group.trainable(model)
        rows = ROWS[2 * rank : 2 * rank + 2]
        joint = gradient(model, lambda: trainable(rows).square().mean()).clone()
        trainable.zero_grad()
        with local_gradients(trainable):
            own = gradient(model, lambda: trainable(rows[:1]).square().mean()).clone()
        both = gradient(model, lambda: trainable(rows[1:]).square().mean()).clone()
        trainable.zero_grad()
        penalized = gradient(
            model, lambda: trainable(rows).square().mean() + 0.5 * model.weight.square().sum()
        )
        model = new_model()
        narrow = group.trainable(model, reduce_dtype="bfloat16")
        rounded = gradient(model, lambda: narrow(rows).square().mean())
        afterwards = []
        for dtype in ("float32", "bfloat16"):
            model = new_model()
            afterwards.append(gradient(model, lambda model=model: model(rows).square().mean()))
            group.average(afterwards[-1:], reduce_dtype=dtype)
        torch.save([joint, own, both, penalized, rounded, *afterwards], directory / f"{rank}.pt")
        group.wait()


def mean_square(model: nn.Linear, *rows: int) -> Callable[[], Tensor]:
    return lambda: model(ROWS[[*rows]]).square().mean()


@pytest.fixture(scope="module")
def gradients_of_two(tmp_path_factory: pytest.TempPathFactory) -> list[list[Tensor]]:
    """Gradients in each of two processes: joint, local, both, penalized, exchanged in bfloat16."""
    directory = tmp_path_factory.mktemp("two")
    assert in_two_processes(partial(work, directory=directory)) == [0, 0]
    return [torch.load(directory / f"{rank}.pt", weights_only=True) for rank in range(2)]


def test_gradients_averaged_afterwards_are_those_of_ddp(
    gradients_of_two: list[list[Tensor]],
) -> None:
    for joint, _, _, _, rounded, afterwards, narrow in gradients_of_two:
        torch.testing.assert_close(afterwards, joint)
        torch.testing.assert_close(narrow, rounded)
        assert not torch.equal(narrow, afterwards)


def test_two_processes_have_the_gradient_of_the_joint_batch(
    gradients_of_two: list[list[Tensor]],
) -> None:
    model = new_model()
    expected = gradient(model, mean_square(model, 0, 1, 2, 3))
    for joint, *_ in gradients_of_two:
        torch.testing.assert_close(joint, expected)


def test_gradients_exchanged_in_bfloat16_are_rounded(gradients_of_two: list[list[Tensor]]) -> None:
    for joint, _, _, _, rounded, *_ in gradients_of_two:
        torch.testing.assert_close(rounded, joint, rtol=2**-7, atol=0)
        assert torch.equal(rounded, rounded.bfloat16().float())
        assert not torch.equal(rounded, joint)


def test_penalty_counts_once_for_two_processes(gradients_of_two: list[list[Tensor]]) -> None:
    weight = new_model().weight.detach()
    for joint, _, _, penalized, *_ in gradients_of_two:
        torch.testing.assert_close(penalized, joint + weight)


def test_accumulated_gradients_are_averaged_once(
    gradients_of_two: list[list[Tensor]],
) -> None:
    model = new_model()
    expected = gradient(model, mean_square(model, 0, 2), mean_square(model, 1, 3))
    for rank, (_, own, both, *_) in enumerate(gradients_of_two):
        alone = new_model()
        torch.testing.assert_close(own, gradient(alone, mean_square(alone, 2 * rank)))
        torch.testing.assert_close(both, expected)


def test_single_process_sums_its_own_values() -> None:
    group = ProcessGroup()
    assert group.sum({"a": 1.0}) == {"a": 1.0}
    assert group.gather("x") == group.gather_to_first("x") == ["x"]
    model = nn.Linear(1, 1)
    assert group.trainable(model) is model


def stop_with_model(group: ProcessGroup) -> None:
    trainable = group.trainable(new_model())
    trainable(ROWS[:2]).sum().backward()
    raise StoppedError


def stop(rank: int, directory: Path) -> None:
    """What each of two processes does that the user stops; the error's frames hold the model."""
    with pytest.raises(StoppedError) as stopped, process_group(CPU, advice="") as group:
        stop_with_model(group)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    assert stopped.tb is not None
    (directory / f"{rank}.txt").write_text("\n".join(threads()))


def threads() -> list[str]:
    """The names of this process's threads, as Linux lists them."""
    return [path.read_text() for path in Path("/proc/self/task").glob("*/comm")]


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are listed by Linux")
def test_stop_closes_all_connections(tmp_path: Path) -> None:
    assert in_two_processes(partial(stop, directory=tmp_path)) == [0, 0]
    left = [(tmp_path / f"{rank}.txt").read_text() for rank in (0, 1)]
    assert all("python" in names or "pytest" in names for names in left)
    assert not any("gloo" in names for names in left)


class JoinedError(Exception):
    pass


@pytest.fixture
def second_of_two(monkeypatch: pytest.MonkeyPatch) -> dist.TCPStore:
    """The environment of a process whose launcher has the store; that of the other is not set."""
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    monkeypatch.setenv("TORCHELASTIC_USE_AGENT_STORE", "True")
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", str(store.port))
    monkeypatch.setattr(processes, "_JOIN_TIMEOUT", timedelta(milliseconds=50))
    return store


def test_ranks_wait_while_the_first_counts_words(
    second_of_two: dist.TCPStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def join(backend: str, *, store: dist.Store, timeout: timedelta, **rank: int) -> None:
        assert (backend, rank) == ("gloo", {"rank": 1, "world_size": 2})
        assert min(timeout, store.timeout) >= timedelta(hours=2)
        raise JoinedError

    second_of_two.set("process 0", "")
    monkeypatch.setattr(processes.dist, "init_process_group", join)
    with pytest.raises(JoinedError), process_group(CPU, advice=""):
        pass


def test_gpus_exchange_gradients_over_nccl_and_wait_over_gloo(
    second_of_two: dist.TCPStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    device, calls = torch.device("cuda", 1), dict[str, Any]()

    def join(backend: str, **options: Any) -> None:
        calls[backend] = options

    def new_group(*, backend: str, timeout: timedelta) -> str:
        calls[backend] = {"timeout": timeout}
        return "gloo group"

    def gather(gathered: list[Any], value: Any, group: object) -> None:
        calls["gather"] = group
        raise JoinedError

    second_of_two.set("process 0", "")
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: None)
    monkeypatch.setattr(processes.dist, "init_process_group", join)
    monkeypatch.setattr(processes.dist, "new_group", new_group)
    monkeypatch.setattr(processes.dist, "all_gather_object", gather)
    with pytest.raises(JoinedError), process_group(device, advice=""):
        pass

    assert calls["nccl"]["device_id"] == device
    assert calls["nccl"]["timeout"] == timedelta(minutes=10)
    assert calls["gloo"] == {"timeout": timedelta(hours=2)}
    assert calls["gather"] == "gloo group"


def test_a_process_alone_uses_the_gpu_of_its_local_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    devices: list[torch.device] = []
    monkeypatch.setattr(torch.cuda, "set_device", devices.append)
    with process_group(torch.device("cuda", 1), advice="") as group:
        assert group.is_alone
    assert devices == [torch.device("cuda", 1)]


CANNOT_JOIN = "^process 1 of 2 cannot join the others: "


@pytest.mark.usefixtures("second_of_two")
def test_missing_process_ends_the_join_with_an_error() -> None:
    with pytest.raises(RunError, match=CANNOT_JOIN), process_group(CPU, advice=""):
        pass


@pytest.mark.parametrize(("rank", "world_size"), [("1", None), ("2", "2"), (None, "0")])
def test_rank_outside_the_world_is_refused(
    rank: str | None, world_size: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("RANK", rank), ("WORLD_SIZE", world_size)):
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    with pytest.raises(
        RunError, match=r"RANK is \d, but it must be below WORLD_SIZE, which is \d; "
    ):
        process_group(CPU, advice="").__enter__()


def test_missing_launcher_fails_quickly(
    second_of_two: dist.TCPStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        monkeypatch.setenv("MASTER_PORT", str(unused.getsockname()[1]))
        monkeypatch.setattr(processes, "_JOIN_TIMEOUT_OF_TORCHRUN", timedelta(milliseconds=50))
        with pytest.raises(RunError, match=CANNOT_JOIN), process_group(CPU, advice=""):
            pass


@pytest.mark.usefixtures("second_of_two")
def test_error_names_the_missing_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MASTER_ADDR")
    expected = f"{CANNOT_JOIN}.*MASTER_ADDR"
    with pytest.raises(RunError, match=expected), process_group(CPU, advice=""):
        pass


def test_cpu_device_can_be_chosen() -> None:
    assert choose_device("cpu") == CPU


def test_more_processes_than_gpus_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert choose_device("cuda") == torch.device("cuda", 1)
    monkeypatch.setenv("LOCAL_RANK", "2")
    with pytest.raises(RunError, match=r"LOCAL_RANK is 2, but .* only 2 GPUs here;"):
        choose_device("auto")


def test_ended_processes_are_detected_also_as_zombies() -> None:
    alive, waited = Peer(0, platform.node(), os.getpid()), ended_process(is_waited_for=True)
    zombie, elsewhere = ended_process(is_waited_for=False), Peer(3, "another", waited.pid)
    assert ended_peers([alive, waited, elsewhere]) == [waited]
    assert ended_peers([alive, zombie]) == [zombie]


def ended_process(*, is_waited_for: bool) -> Peer:
    child = os.posix_spawn(sys.executable, [sys.executable, "-S", "-c", ""], os.environ)
    if is_waited_for:
        os.waitpid(child, 0)
    return Peer(1 if is_waited_for else 2, platform.node(), child)


def test_own_error_is_not_blamed_on_peers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(processes, "_SECONDS_TO_END", 0.1)
    assert ended_peers([Peer(0, platform.node(), os.getpid())]) == []


@pytest.fixture
def first_of_two_machines(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    peers = [Peer(0, platform.node(), os.getpid()), Peer(1, "another", 1)]
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setattr(processes, "_SECONDS_TO_END", 0.1)
    monkeypatch.setattr(processes, "_join", lambda device, rank: None)
    monkeypatch.setattr(processes.dist, "destroy_process_group", lambda: None)
    monkeypatch.setattr(ProcessGroup, "gather", lambda self, value: peers)
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("first_of_two_machines")
def test_ended_remote_process_is_reported_without_its_name() -> None:
    expected = (
        r"process 0 of 2 cannot continue without one on another machine, which has "
        r"ended \(\[gloo/.* Connection closed by peer; torchrun's report names it\); "
        r"resume with --recover$"
    )
    with (
        pytest.raises(RunError, match=expected),
        process_group(CPU, advice="resume with --recover"),
    ):
        raise RuntimeError("[gloo/transport/tcp/pair.cc:534] Connection closed by peer\nmore")


@pytest.mark.usefixtures("first_of_two_machines")
def test_own_error_is_not_blamed_on_an_ended_peer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(processes, "ended_peers", list)
    with pytest.raises(RuntimeError, match="shapes cannot"), process_group(CPU, advice=""):
        raise RuntimeError("shapes cannot be multiplied")


@pytest.mark.usefixtures("first_of_two_machines")
def test_process_reports_its_error_despite_torchrun_sigterm() -> None:
    with pytest.raises(RunError), process_group(CPU, advice=""):
        raise RuntimeError("[gloo/transport/tcp/pair.cc:534] Connection closed by peer")
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN


def slow_path_line(
    reason: str | None,
    device: str,
    rank: int,
    patch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> str:
    patch.setattr(processes, "slow_path_reason", lambda: reason)
    processes.report_slow_path(torch.device(device), ProcessGroup(Rank(rank, 2)))
    return capsys.readouterr().err


def test_first_rank_reports_slow_path(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    line = "LSTM steps are computed by PyTorch, which is slower: no compiler\n"
    assert slow_path_line("no compiler", "cpu", 0, monkeypatch, capsys) == line


@pytest.mark.parametrize(
    ("reason", "device", "rank"),
    [(None, "cpu", 0), ("no compiler", "cuda", 0), ("no compiler", "cpu", 1)],
    ids=["compiled", "gpu", "other process"],
)
def test_slow_path_is_otherwise_not_reported(
    reason: str | None,
    device: str,
    rank: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert slow_path_line(reason, device, rank, monkeypatch, capsys) == ""
