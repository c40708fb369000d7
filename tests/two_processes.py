"""Two processes as `torchrun` starts them, but without the time that two imports take."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable

import torch
import torch.distributed as dist


def in_two_processes(work: Callable[[int], object]) -> list[int | None]:
    """Do work in two processes, given their ranks; return how each has ended."""
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    context = multiprocessing.get_context("fork")
    processes = [
        context.Process(target=_one_of_two, args=(rank, store.port, work), daemon=True)
        for rank in (0, 1)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(timeout=300)
    return [process.exitcode for process in processes]


def _one_of_two(rank: int, port: int, work: Callable[[int], object]) -> None:
    torch.set_num_threads(1)  # the others did not come along into this process
    os.environ.update(
        RANK=str(rank),
        WORLD_SIZE="2",
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
        TORCHELASTIC_USE_AGENT_STORE="True",  # the store is there already
    )
    work(rank)
