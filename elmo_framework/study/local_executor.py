"""Train the runs of a study in processes of this machine."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import forkserver
from multiprocessing.connection import wait
from multiprocessing.context import ForkServerProcess
from multiprocessing.process import BaseProcess
from typing import Annotated, TypeAlias, final

from annotated_types import Ge, Le

from elmo_framework.io.process import keep_freed_memory, variable
from elmo_framework.study.executor import Executor, JobEnd, Outcome, RunJob, Workers
from elmo_framework.study.folder import StudyFolder
from elmo_framework.study.job import execute, log_tail

NumProcesses: TypeAlias = Annotated[int, Ge(1), Le(1_000)]
_EXIT_CODES: dict[Outcome, int] = {"done": 0, "failed": 1, "busy": 75, "stopped": 130}
_STOP_TIMEOUT = 60.0
"""Seconds to save a checkpoint; a worker that takes longer is killed."""

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")


@final
@Executor.register("local")
class LocalExecutor(Executor):
    """Processes of this machine, forked from one that has imported everything already.

    Args:
        threads: of the computation of each run.
        jobs: how many runs are trained at a time, unless `--jobs` is given; by default as many as
            the CPU has threads for.
    """

    def __init__(self, threads: NumProcesses = 1, jobs: NumProcesses | None = None) -> None:
        self._threads, self._jobs = threads, jobs

    @contextmanager
    def start(self, num_jobs: int | None) -> Iterator[Workers]:
        """Start the process that is forked; see `Executor.start`."""
        num_jobs = num_jobs or self._jobs or max(1, (os.cpu_count() or 1) // self._threads)
        workers = _LocalWorkers(num_jobs, self._threads)
        try:
            yield workers
        finally:
            workers.kill()


@final
class _LocalWorkers(Workers):
    """Processes, one for each run."""

    def __init__(self, num_jobs: int, num_threads: int) -> None:
        self._num_jobs, self._num_threads = num_jobs, num_threads
        self._running: dict[str, tuple[RunJob, ForkServerProcess]] = {}
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["elmo_framework.study.preloaded"])
        threads = str(num_threads)
        with variable(_THREAD_VARIABLES[0], threads), variable(_THREAD_VARIABLES[1], threads):
            forkserver.ensure_running()

    @property
    def num_free(self) -> int:
        return self._num_jobs - len(self._running)

    def submit(self, job: RunJob) -> None:
        process = self._context.Process(target=run_in_worker, args=(job, self._num_threads))
        process.start()
        self._running[job.plan.name] = job, process

    def wait(self, timeout: float) -> Sequence[JobEnd]:
        if not self._running:
            return []
        sentinels = {process.sentinel: name for name, (_, process) in self._running.items()}
        ended = [
            sentinels[each] for each in wait(list(sentinels), timeout) if isinstance(each, int)
        ]
        return [worker_end(*self._running.pop(name)) for name in ended]

    def stop(self) -> None:
        for _, process in self._running.values():
            process.terminate()
        deadline = time.monotonic() + _STOP_TIMEOUT
        for _, process in self._running.values():
            process.join(max(0.0, deadline - time.monotonic()))
        self.kill()

    def kill(self) -> None:
        """Kill what runs still, and wait for its end."""
        for _, process in self._running.values():
            process.kill()
            process.join()
        self._running.clear()


def worker_end(job: RunJob, process: BaseProcess) -> JobEnd:
    """Wait for a process of `run_in_worker`; return how the job ended."""
    process.join()
    code, name = process.exitcode or 0, job.plan.name
    outcomes = {value: outcome for outcome, value in _EXIT_CODES.items()}
    outcome = outcomes.get(code, "failed")
    if outcome != "failed":
        return JobEnd(name, outcome)
    killed = f"its process was ended by {signal.Signals(-code).name}\n" if code < 0 else ""
    return JobEnd(name, outcome, killed + log_tail(StudyFolder(job.folder).log(name)))


def run_in_worker(job: RunJob, num_threads: int) -> None:
    """Do a job in a new process, and exit with the code of its outcome."""
    import torch

    threading.Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(num_threads)
    keep_freed_memory()
    sys.exit(_EXIT_CODES[execute(job).outcome])


def _end_with_parent() -> None:
    """Stop this process, with a checkpoint, when `elmo study` is gone."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_STOP_TIMEOUT)
    os.kill(os.getpid(), signal.SIGKILL)
