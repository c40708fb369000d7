"""Processes that train one model together: a single one, or those started by `torchrun`."""

from __future__ import annotations

import os
import platform
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

# Its functions have the process group of the time of import as a default argument and would keep
# it alive after its destruction; workers then hang when Python exits. So import it early.
import torch.distributed.nn
from torch import Tensor, nn
from torch.distributed.rendezvous import rendezvous
from torch.nn.parallel import DistributedDataParallel

from elmo_framework import console
from elmo_framework.data.data_loader import Rank
from elmo_framework.errors import RunError, StoppedError, allowed
from elmo_framework.io.files import IS_WINDOWS
from elmo_framework.kernels.compiler import slow_path_reason
from elmo_framework.training.interrupt import ignore_termination

SYNC_INTERVAL = 20
"""Updates, or batches of an evaluation, between two synchronizations with a GPU.

On the CPU the processes synchronize after each.
"""

_TIMEOUT = timedelta(hours=2)
"""Long enough for the first process to count the words of a large text or fill a layer cache.

A process that dies is noticed by its broken connection or by `torchrun`, not by this timeout.
"""

_NCCL_TIMEOUT = timedelta(minutes=10)
"""The longest that GPUs wait for each other's gradients, after which NCCL ends the process."""

_JOIN_TIMEOUT = timedelta(minutes=10)
"""Timeout for the processes to find each other at the start."""

_JOIN_TIMEOUT_OF_TORCHRUN = timedelta(seconds=30)
"""The same where `torchrun` hosts the store, which then exists before the processes start."""

_SECONDS_TO_END = 3.0
"""A connection breaks a moment before its process has ended."""

_ALONE = Rank()


class ProcessGroup:
    """Collective operations of this process with the others; local if it is the only one.

    Values other than gradients are exchanged over gloo, also between GPUs: these waits may be long,
    while the first process counts words, and a broken connection ends them with an error.

    Args:
        rank: of this process; by default it is the only one.
        connection: the gloo group of all processes; None for the default group.
    """

    def __init__(self, rank: Rank = _ALONE, connection: dist.ProcessGroup | None = None) -> None:
        self.rank, self._connection = rank, connection
        self._averaging: list[DistributedDataParallel] = []

    @property
    def is_first(self) -> bool:
        """Whether this is rank 0, the process that writes files and messages."""
        return self.rank.index == 0

    @property
    def is_alone(self) -> bool:
        return self.rank.world_size == 1

    def sum(self, sums: Mapping[str, float]) -> dict[str, float]:
        """Add values by name over all processes; the names may differ."""
        total: Counter[str] = Counter()
        for part in self.gather(dict(sums)):
            total.update(part)
        return dict(total)

    def gather(self, value: Any) -> list[Any]:
        """Return every process's value, by rank."""
        if self.is_alone:
            return [value]
        gathered: list[Any] = [None] * self.rank.world_size
        dist.all_gather_object(gathered, value, group=self._connection)
        return gathered

    def gather_to_first(self, value: Any) -> list[Any]:
        """Return every process's value, by rank, on the first process; [] on the others."""
        if self.is_alone:
            return [value]
        gathered: list[Any] = [None] * self.rank.world_size if self.is_first else []
        dist.gather_object(value, gathered or None, dst=0, group=self._connection)
        return gathered

    def first(self, value: Any) -> Any:
        """Return the first process's value, on every process."""
        if self.is_alone:
            return value
        values = [value]
        dist.broadcast_object_list(values, src=0, group=self._connection)
        return values[0]

    def wait(self) -> None:
        """Block until every process has called this."""
        if not self.is_alone:
            dist.barrier(group=self._connection)

    def trainable(self, model: nn.Module, *, reduce_dtype: str = "float32") -> nn.Module:
        """Wrap a model so that its gradients are averaged over the processes.

        Args:
            model: on its device.
            reduce_dtype: the type in which gradients are exchanged: `float32` or `bfloat16`.
        """
        if self.is_alone:
            return model
        averaging = DistributedDataParallel(model, gradient_as_bucket_view=True)
        # Buffers are constants. The name of the argument differs between versions of PyTorch.
        averaging.broadcast_buffers = False
        if reduce_dtype == "bfloat16":
            averaging.register_comm_hook(None, _averaged_in_bfloat16)
        self._averaging.append(averaging)
        return averaging

    def average(self, gradients: Sequence[Tensor], *, reduce_dtype: str = "float32") -> None:
        """Average tensors over the processes, in place.

        Args:
            gradients: of the same shapes in every process.
            reduce_dtype: see `trainable`.
        """
        pending = []
        for gradient in gradients:
            narrow = gradient.to(getattr(torch, reduce_dtype)).div_(self.rank.world_size)
            pending.append((gradient, narrow, dist.all_reduce(narrow, async_op=True)))
        for gradient, narrow, work in pending:
            work.wait()
            if narrow is not gradient:
                gradient.copy_(narrow)

    def release(self) -> None:
        """Close the connections of the models from `trainable`; they cannot train any more.

        Otherwise references to these models, as in a traceback, would keep the connections open.
        """
        for averaging in self._averaging:
            for name in ("logger", "reducer", "process_group"):
                setattr(averaging, name, None)
        self._averaging.clear()


# PyTorch's own hook does the same, but over NCCL only. DDP rejects annotations that are text.
def _averaged_in_bfloat16(_, bucket):  # type: ignore[no-untyped-def]
    gradients = bucket.buffer()
    narrow = gradients.to(torch.bfloat16).div_(dist.get_world_size())
    future = dist.all_reduce(narrow, async_op=True).get_future()
    return future.then(lambda done: gradients.copy_(done.value()[0]))


def local_gradients(model: nn.Module) -> AbstractContextManager[None]:
    """Skip averaging over processes, for all but the last batch of an update."""
    return model.no_sync() if isinstance(model, DistributedDataParallel) else nullcontext()


@contextmanager
def process_group(device: torch.device, *, advice: str) -> Iterator[ProcessGroup]:
    """Join the processes started by `torchrun`, as described by its environment variables.

    Args:
        device: of this process; GPUs communicate over NCCL, CPUs over gloo.
        advice: the way out for the user, for the message when another process has ended.

    Raises:
        RunError: the environment variables are invalid, the processes do not find each other, or
            another of them has ended.
    """
    rank = _rank()
    if device.type == "cuda":
        torch.cuda.set_device(device)  # of CUDA graphs, too
    if rank.world_size == 1:
        yield ProcessGroup(rank)
        return
    group = ProcessGroup(rank, _join(device, rank))
    others = group.gather(Peer(rank.index, platform.node(), os.getpid()))
    try:
        yield group
    except StoppedError:
        ignore_termination()
        raise
    except RuntimeError as error:  # of torch.distributed, when a connection breaks
        culprit = _culprit(others, error)
        if culprit is None:
            raise
        raise RunError(
            f"process {rank.index} of {rank.world_size} cannot continue without {culprit}; {advice}"
        ) from error
    finally:
        group.release()
        dist.destroy_process_group()


def _join(device: torch.device, rank: Rank) -> dist.ProcessGroup | None:
    """Connect to the other processes; return the group of their long waits.

    Raises:
        RunError: the store cannot be reached, or one of the processes does not join.
    """
    is_hosted = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    timeout = _JOIN_TIMEOUT_OF_TORCHRUN if is_hosted else _JOIN_TIMEOUT
    try:
        store, _, _ = next(rendezvous("env://", timeout=timeout))
        store.set(f"process {rank.index}", "")
        store.wait([f"process {rank}" for rank in range(rank.world_size)], _JOIN_TIMEOUT)
        store.set_timeout(_TIMEOUT)
        place = {"store": store, "rank": rank.index, "world_size": rank.world_size}
        if device.type != "cuda":
            dist.init_process_group("gloo", timeout=_TIMEOUT, **place)
            return None
        dist.init_process_group("nccl", timeout=_NCCL_TIMEOUT, device_id=device, **place)
        waiting: dist.ProcessGroup = dist.new_group(backend="gloo", timeout=_TIMEOUT)
        return waiting
    except (dist.DistError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise RunError(
            f"process {rank.index} of {rank.world_size} cannot join the others: {reason}"
        ) from error


@dataclass(frozen=True)
class Peer:
    """One of the processes, as identified by the others."""

    rank: int
    host: str
    pid: int

    def __str__(self) -> str:
        return f"process {self.rank} (pid {self.pid} on {self.host})"

    @property
    def is_elsewhere(self) -> bool:
        return self.host != platform.node()

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended; always False on another machine or Windows."""
        if self.is_elsewhere or IS_WINDOWS:  # where signal 0 is Ctrl-C
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        status = Path(f"/proc/{self.pid}/stat")
        # Until its parent has waited for it, an ended process is listed as a zombie.
        return status.is_file() and status.read_text().rpartition(")")[2].split()[0] == "Z"


def ended_peers(peers: Sequence[Peer]) -> list[Peer]:
    """Return the processes that have ended; wait up to three seconds for the first."""
    deadline = time.monotonic() + _SECONDS_TO_END
    while True:
        ended = [peer for peer in peers if peer.has_ended]
        if ended or time.monotonic() > deadline:
            return ended
        time.sleep(_SECONDS_TO_END / 20)


def _culprit(peers: Sequence[Peer], error: RuntimeError) -> str | None:
    """Describe the ended process that caused an error; None if no other process did."""
    if not (isinstance(error, dist.DistError) or "gloo/" in str(error)):
        return None
    ignore_termination()
    ended = ended_peers(peers)
    if ended:
        return f"{', '.join(map(str, ended))}, which has ended"
    if any(peer.is_elsewhere for peer in peers):
        reason = str(error).partition("\n")[0]
        return f"one on another machine, which has ended ({reason}; torchrun's report names it)"
    return None


def choose_device(name: str) -> torch.device:
    """Return the device that `auto`, `cpu` or `cuda` means for this process.

    Raises:
        RunError: this machine has no such device.
    """
    if name not in ("auto", "cpu", "cuda"):
        raise RunError(f"unknown device {name!r}; {allowed(name, ('auto', 'cpu', 'cuda'))}")
    is_available = torch.cuda.is_available()
    if name == "cuda" and not is_available:
        raise RunError("device 'cuda' needs a GPU that torch can use, but there is none")
    if name == "cpu" or not is_available:
        return torch.device("cpu")
    index, num_devices = _environment("LOCAL_RANK", 0), torch.cuda.device_count()
    if index >= num_devices:
        raise RunError(
            f"LOCAL_RANK is {index}, but torch can use only {num_devices} GPUs here; "
            "start at most one process per GPU"
        )
    return torch.device("cuda", index)


def report_slow_path(device: torch.device, group: ProcessGroup) -> None:
    """Report on the first rank that PyTorch replaces the compiled functions of the CPU, and why."""
    if device.type == "cpu" and group.is_first:
        reason = slow_path_reason()
        if reason is not None:
            console.info(f"LSTM steps are computed by PyTorch, which is slower: {reason}")


def _rank() -> Rank:
    index, world_size = _environment("RANK", 0), _environment("WORLD_SIZE", 1)
    if index >= world_size:
        raise RunError(
            f"the environment variable RANK is {index}, but it must be below WORLD_SIZE, which is "
            f"{world_size}; unset both, or start the processes with torchrun"
        )
    return Rank(index, world_size)


def _environment(name: str, default: int) -> int:
    text = os.environ.get(name, str(default))
    if not text.isdigit():
        raise RunError(f"the environment variable {name} must be a number, not {text!r}")
    return int(text)
