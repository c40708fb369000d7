"""Train the runs of a study in processes of this machine."""

from __future__ import annotations

import importlib
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Annotated, TypeAlias, final

from annotated_types import Ge, Le

from elmo_framework.io.process import keep_freed_memory, num_usable_cpus
from elmo_framework.study.executor import Executor, JobEnd, Outcome, RunJob, Workers
from elmo_framework.study.folder import StudyFolder
from elmo_framework.study.fork_server import STOP_TIMEOUT, ForkServer
from elmo_framework.study.job import execute, log_tail

NumProcesses: TypeAlias = Annotated[int, Ge(1), Le(1_000)]
_EXIT_CODES: dict[Outcome, int] = {"done": 0, "failed": 1, "busy": 75, "stopped": 130}
_OUTCOMES = {code: outcome for outcome, code in _EXIT_CODES.items()}
_PRELOADED = "elmo_framework.study.preloaded"


@final
@Executor.register("local")
class LocalExecutor(Executor):
    """Processes of this machine, forked from one that has imported everything already.

    Args:
        threads: of the computation of each run.
        jobs: how many runs are trained at a time, unless `--jobs` is given; by default as many as
            the CPUs that this process may use have threads for.
    """

    def __init__(self, threads: NumProcesses = 1, jobs: NumProcesses | None = None) -> None:
        self._threads, self._jobs = threads, jobs

    @contextmanager
    def start(self, num_jobs: int | None) -> Iterator[Workers]:
        """Start the process that is forked; see `Executor.start`."""
        num_jobs = num_jobs or self._jobs or max(1, num_usable_cpus() // self._threads)
        importlib.import_module(_PRELOADED)
        server = ForkServer(partial(run_in_worker, num_threads=self._threads))
        try:
            yield _LocalWorkers(server, num_jobs)
        finally:
            server.close()


@final
class _LocalWorkers(Workers):
    """Processes, one for each run."""

    def __init__(self, server: ForkServer, num_jobs: int) -> None:
        self._server, self._num_jobs = server, num_jobs
        self._running: dict[str, RunJob] = {}

    @property
    def num_free(self) -> int:
        return self._num_jobs - len(self._running)

    def submit(self, job: RunJob) -> None:
        self._server.start(job.plan.name, job)
        self._running[job.plan.name] = job

    def wait(self, timeout: float) -> Sequence[JobEnd]:
        if not self._running:
            return []
        ends = self._server.ends(timeout)
        return [end_of(self._running.pop(end.key), end.exit_code) for end in ends]

    def stop(self) -> None:
        self._server.signal(signal.SIGTERM)
        deadline = time.monotonic() + STOP_TIMEOUT
        while self._running and (left := deadline - time.monotonic()) > 0:
            self.wait(left)


def end_of(job: RunJob, exit_code: int) -> JobEnd:
    """Return how a job ended whose process called `run_in_worker`."""
    name, outcome = job.plan.name, _OUTCOMES.get(exit_code, "failed")
    if outcome != "failed":
        return JobEnd(name, outcome)
    reason = _killed_by(-exit_code) if exit_code < 0 else ""
    return JobEnd(name, outcome, reason + log_tail(StudyFolder(job.folder).log(name)))


def _killed_by(number: int) -> str:
    name = signal.Signals(number).name
    if number == signal.SIGKILL:
        return (
            f"its process was ended by {name}. The system does so when memory runs out: try fewer "
            "--jobs or a smaller batch. The log ends with\n"
        )
    return f"its process was ended by {name}. The log ends with\n"


def run_in_worker(job: RunJob, num_threads: int) -> None:
    """Do a job in a new process, and exit with the code of its outcome."""
    import torch

    torch.set_num_threads(num_threads)
    keep_freed_memory()
    sys.exit(_EXIT_CODES[execute(job).outcome])
