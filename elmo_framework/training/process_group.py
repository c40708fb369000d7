"""The processes that train one model together: one, or those that `torchrun` started."""

from __future__ import annotations

import os
import platform
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

# Its functions have a process group among their defaults, if there is one when it is imported, and
# would keep that one past its destruction: a worker then hangs when Python ends.
import torch.distributed.nn
from torch import nn
from torch.distributed.rendezvous import rendezvous
from torch.nn.parallel import DistributedDataParallel

from elmo_framework import console
from elmo_framework.data.source import Rank
from elmo_framework.errors import RunError, StoppedError, allowed
from elmo_framework.kernels.compiler import slow_path_reason
from elmo_framework.training.interrupt import ignore_termination

SYNC_INTERVAL = 20
"""Updates, or batches of an evaluation, between two looks at what would make a GPU wait.

On a CPU there is a look after each.
"""

_LONGEST_WAIT = timedelta(hours=2)
"""So long the others may wait while the first counts the words of a large text, or fills a store.

A process that has died is seen by its connection, or by `torchrun`, and not by this.
"""

_LONGEST_JOIN = timedelta(minutes=10)
"""So long the processes wait for each other when they start."""

_LONGEST_JOIN_OF_TORCHRUN = timedelta(seconds=30)
"""The same where `torchrun` has the place to meet at: it is there before the processes are."""

_SECONDS_TO_END = 3.0
"""A broken connection is seen a moment before the end of the process behind it."""


class ProcessGroup:
    """One process among `world_size`; alone, everything it does is local.

    Args:
        rank: the number of this process, and how many there are.
    """

    def __init__(self, rank: Rank) -> None:
        self.rank = rank
        self._averaging: list[DistributedDataParallel] = []

    @property
    def is_first(self) -> bool:
        """Whether this process writes files and talks to the user."""
        return self.rank.index == 0

    @property
    def is_alone(self) -> bool:
        """Whether there is no other process."""
        return self.rank.world_size == 1

    def sum(self, sums: Mapping[str, float]) -> dict[str, float]:
        """Add up sums by name over the processes, which may hold different names."""
        total: Counter[str] = Counter()
        for part in self.gather(dict(sums)):
            total.update(part)
        return dict(total)

    def gather(self, value: Any) -> list[Any]:
        """Return every process's value, by rank."""
        if self.is_alone:
            return [value]
        gathered: list[Any] = [None] * self.rank.world_size
        dist.all_gather_object(gathered, value)
        return gathered

    def gather_to_first(self, value: Any) -> list[Any]:
        """Return every process's value, by rank, on the first; nothing on the others."""
        if self.is_alone:
            return [value]
        gathered: list[Any] = [None] * self.rank.world_size if self.is_first else []
        dist.gather_object(value, gathered or None, dst=0)
        return gathered

    def first(self, value: Any) -> Any:
        """Return the first process's value, on every process."""
        if self.is_alone:
            return value
        held = [value]
        dist.broadcast_object_list(held, src=0)
        return held[0]

    def wait(self) -> None:
        """Go on when every process has come here."""
        if not self.is_alone:
            dist.barrier()

    def trainable(self, model: nn.Module) -> nn.Module:
        """Return the model to call in training: one whose gradients become averages."""
        if self.is_alone:
            return model
        averaging = DistributedDataParallel(model)
        # Buffers are constants; the argument that says so has not the same name in all of PyTorch.
        averaging.broadcast_buffers = False
        self._averaging.append(averaging)
        return averaging

    def release(self) -> None:
        """Take the connections from what `trainable` returned, which cannot train any more.

        Whatever holds those models, as the frames of an error do, would hold the connections.
        """
        for averaging in self._averaging:
            for name in ("logger", "reducer", "process_group"):
                setattr(averaging, name, None)
        self._averaging.clear()


def local_gradients(model: nn.Module) -> AbstractContextManager[None]:
    """Keep gradients on this process, for all but the last batch of an update."""
    return model.no_sync() if isinstance(model, DistributedDataParallel) else nullcontext()


@contextmanager
def process_group(device: torch.device, *, to_go_on: str) -> Iterator[ProcessGroup]:
    """Join the processes that `torchrun` started, as its environment variables say.

    Args:
        device: of this process; GPUs talk over NCCL, CPUs over gloo.
        to_go_on: what a user does when another of the processes has ended.

    Raises:
        RunError: the environment variables make no sense, the processes do not find each other, or
            another of them has ended.
    """
    rank = Rank(_environment("RANK", 0), _environment("WORLD_SIZE", 1))
    if rank.world_size == 1:
        yield ProcessGroup(rank)
        return
    if device.type == "cuda":
        torch.cuda.set_device(device)
    _join("nccl" if device.type == "cuda" else "gloo", rank)
    group = ProcessGroup(rank)
    others = group.gather(Peer(rank.index, platform.node(), os.getpid()))
    try:
        yield group
    except StoppedError:
        ignore_termination()
        raise
    except RuntimeError as error:  # of torch.distributed, when a connection breaks
        missed = _missed(others, error)
        if missed is None:
            raise
        raise RunError(
            f"process {rank.index} of {rank.world_size} cannot go on without {missed}; {to_go_on}"
        ) from error
    finally:
        group.release()
        dist.destroy_process_group()


def _join(backend: str, rank: Rank) -> None:
    """Connect to the other processes.

    Raises:
        RunError: the place to meet at is not there, or one of them does not come.
    """
    has_place = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    longest = _LONGEST_JOIN_OF_TORCHRUN if has_place else _LONGEST_JOIN
    try:
        store, _, _ = next(rendezvous("env://", timeout=longest))
        store.set(f"process {rank.index}", "")
        store.wait([f"process {rank}" for rank in range(rank.world_size)], _LONGEST_JOIN)
        store.set_timeout(_LONGEST_WAIT)
        dist.init_process_group(
            backend,
            store=store,
            rank=rank.index,
            world_size=rank.world_size,
            timeout=_LONGEST_WAIT,
        )
    except (dist.DistError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise RunError(
            f"process {rank.index} of {rank.world_size} cannot join the others: {reason}"
        ) from error


@dataclass(frozen=True)
class Peer:
    """One of the processes, so that the others can tell which has ended.

    Attributes:
        rank: its number.
        host: the name of its machine.
        pid: its id there.
    """

    rank: int
    host: str
    pid: int

    def __str__(self) -> str:
        return f"process {self.rank} (pid {self.pid} on {self.host})"

    @property
    def is_elsewhere(self) -> bool:
        """Whether it runs on another machine than this process."""
        return self.host != platform.node()

    @property
    def has_ended(self) -> bool:
        """Whether it has; known on its own machine only."""
        if self.is_elsewhere:
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        status = Path(f"/proc/{self.pid}/stat")
        # Until its parent takes note of its end it is listed, as a zombie.
        return status.is_file() and status.read_text().rpartition(")")[2].split()[0] == "Z"


def ended_peers(peers: Iterable[Peer]) -> list[Peer]:
    """Return the processes that have ended, waiting a little for one to do so."""
    peers, deadline = list(peers), time.monotonic() + _SECONDS_TO_END
    while True:
        ended = [peer for peer in peers if peer.has_ended]
        if ended or time.monotonic() > deadline:
            return ended
        time.sleep(_SECONDS_TO_END / 20)


def _missed(peers: Iterable[Peer], error: RuntimeError) -> str | None:
    """Say which process this one failed for; None if that is not for another."""
    if not (isinstance(error, dist.DistError) or "gloo/" in str(error)):
        return None
    ignore_termination()
    peers = list(peers)
    ended = ended_peers(peers)
    if ended:
        return f"{', '.join(map(str, ended))}, which has ended"
    if any(peer.is_elsewhere for peer in peers):
        reason = str(error).partition("\n")[0]
        return f"one on another machine, which has ended ({reason}; torchrun's report names it)"
    return None


def choose_device(wanted: str) -> torch.device:
    """Return the device that `auto`, `cpu` or `cuda` means for this process.

    Raises:
        RunError: there is no such device here.
    """
    if wanted not in ("auto", "cpu", "cuda"):
        raise RunError(f"{wanted!r} is no device; {allowed(wanted, ('auto', 'cpu', 'cuda'))}")
    is_available = torch.cuda.is_available()
    if wanted == "cuda" and not is_available:
        raise RunError("the device 'cuda' needs a GPU that torch can use, and there is none")
    if wanted == "cpu" or not is_available:
        return torch.device("cpu")
    index, num_devices = _environment("LOCAL_RANK", 0), torch.cuda.device_count()
    if index >= num_devices:
        raise RunError(
            f"LOCAL_RANK is {index}, and the GPUs that torch can use here are {num_devices}; "
            "start at most one process for each"
        )
    return torch.device("cuda", index)


def report_slow_path(device: torch.device, group: ProcessGroup) -> None:
    """Report on the first rank that PyTorch replaces the compiled functions, and why.

    Args:
        device: of the computation; the compiled functions run on the CPU.
        group: the processes.
    """
    if device.type == "cpu" and group.is_first:
        reason = slow_path_reason()
        if reason is not None:
            console.info(f"LSTM steps are computed by PyTorch, which is slower: {reason}")


def _environment(name: str, default: int) -> int:
    """Read one of the numbers that `torchrun` sets."""
    text = os.environ.get(name, str(default))
    if not text.isdigit():
        raise RunError(f"the environment variable {name} is {text!r}, and should be a number")
    return int(text)
