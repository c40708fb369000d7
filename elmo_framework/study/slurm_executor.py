"""Train the runs of a study as jobs of Slurm, submitted by submitit."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, final

from annotated_types import Ge, Gt, Le

from elmo_framework.config.types import Default
from elmo_framework.errors import RunError
from elmo_framework.io.extras import import_extra
from elmo_framework.study.executor import Executor, JobEnd, RunJob, Workers
from elmo_framework.study.folder import StudyFolder
from elmo_framework.study.fork_server import STOP_TIMEOUT, fork_worker
from elmo_framework.study.local_executor import end_of, run_in_worker

if TYPE_CHECKING:
    from multiprocessing.context import ForkProcess

_POLL_SECONDS = 0.2

Positive = Annotated[int, Ge(1), Le(1_000_000)]


@final
@Executor.register("slurm")
class SlurmExecutor(Executor):
    """Jobs of Slurm, one for each run; the folder of the study must be on a shared file system.

    A job that is preempted or reaches its time limit saves a checkpoint and is queued again. So is
    a job that got lost, for example with its node, a few times. What a job prints is in
    `jobs/` in the folder of the study.

    Args:
        cluster: `slurm`; or `local` for processes of this machine, to try a study.
        jobs: how many runs are queued at a time, unless `--jobs` is given.
        timeout_min: the time limit of a job in minutes.
        cpus_per_task: the number of CPUs, and of threads, of a job.
        gpus_per_node: the number of GPUs of a job.
        mem_gb: the memory of a job in gigabytes; by default that of the partition.
        max_requeues: how often a job may reach its time limit or get lost.
        parameters: further parameters of submitit, such as `slurm_partition` and `slurm_account`.
    """

    def __init__(
        self,
        parameters: Annotated[dict[str, Any], Default({})],
        cluster: Literal["slurm", "local"] = "slurm",
        jobs: Positive = 50,
        timeout_min: Positive = 240,
        cpus_per_task: Positive = 1,
        gpus_per_node: Annotated[int, Ge(0), Le(1_000)] = 0,
        mem_gb: Annotated[float, Gt(0)] | None = None,
        max_requeues: Positive = 20,
    ) -> None:
        self._cluster, self._jobs, self._max_requeues = cluster, jobs, max_requeues
        self._num_threads = cpus_per_task
        self._parameters = {
            "name": "elmo",
            "timeout_min": timeout_min,
            "cpus_per_task": cpus_per_task,
            "gpus_per_node": gpus_per_node,
            "mem_gb": mem_gb,
            **parameters,
        }
        import_extra("submitit", "slurm")

    @contextmanager
    def start(self, num_jobs: int | None) -> Iterator[Workers]:
        workers = _SubmittedJobs(self, num_jobs or self._jobs)
        try:
            yield workers
        finally:
            workers.cancel()

    @property
    def max_requeues(self) -> int:
        return self._max_requeues

    def submit(self, job: RunJob) -> Any:
        """Submit a job; return its `submitit.Job`.

        Raises:
            RunError: there is no Slurm here, or it does not accept the parameters.
        """
        submitit = import_extra("submitit", "slurm")
        limit = {f"{self._cluster}_max_num_timeout": self._max_requeues}
        try:
            executor = submitit.AutoExecutor(job.folder / "jobs", cluster=self._cluster, **limit)
            executor.update_parameters(**self._parameters)
            return executor.submit(SubmittedRun(job, self._num_threads))
        except (AssertionError, NameError, RuntimeError, TypeError, ValueError) as error:
            raise RunError(f"executor: submitit cannot submit a job: {error}") from error
        except submitit.core.utils.FailedJobError as error:
            raise RunError(f"executor: Slurm does not accept a job: {error}") from error


@final
class SubmittedRun:
    """A run as a submitted job: in a process of its own, which can stop with a checkpoint."""

    def __init__(self, job: RunJob, num_threads: int) -> None:
        self._job, self._num_threads = job, num_threads
        self._process: ForkProcess | None = None

    def __call__(self) -> JobEnd:
        work = partial(run_in_worker, num_threads=self._num_threads)
        self._process = fork_worker(work, self._job)
        try:
            self._process.join()
            return end_of(self._job, self._process.exitcode or 0)
        finally:
            self._stop()

    def checkpoint(self) -> Any:
        """Stop early, when submitit asks for it; return what resumes the run."""
        self._stop()
        helpers = import_extra("submitit.helpers", "slurm")
        return helpers.DelayedSubmission(SubmittedRun(self._job, self._num_threads))

    def _stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.join()


@final
class _SubmittedJobs(Workers):
    """Jobs that were submitted and have not ended."""

    def __init__(self, executor: SlurmExecutor, num_jobs: int) -> None:
        self._executor, self._num_jobs = executor, num_jobs
        self._running: dict[str, tuple[RunJob, Any]] = {}
        self._num_losses: Counter[str] = Counter()

    @property
    def num_free(self) -> int:
        return self._num_jobs - len(self._running)

    def submit(self, job: RunJob) -> None:
        self._running[job.plan.name] = job, self._executor.submit(job)

    def wait(self, timeout: float) -> Sequence[JobEnd]:
        deadline = time.monotonic() + timeout
        while self._running:
            ends = [self._end(name) for name, (_, each) in self._running.items() if each.done()]
            for end in ends:
                del self._running[end.name]
            if ends or time.monotonic() >= deadline:
                return ends
            time.sleep(_POLL_SECONDS)
        return []

    def stop(self) -> None:
        jobs = [job for job, _ in self._running.values()]
        self.cancel()
        for job in jobs:
            # The run of a cancelled job is locked until it has saved its checkpoint.
            lock = StudyFolder(job.folder).lock(job.plan.name)
            with lock.acquire(timeout=STOP_TIMEOUT):
                pass

    def cancel(self) -> None:
        """Cancel all jobs, without waiting."""
        for _, submitted in self._running.values():
            submitted.cancel()
        self._running.clear()

    def _end(self, name: str) -> JobEnd:
        _, submitted = self._running[name]
        error = submitted.exception()
        if error is None:
            end: JobEnd = submitted.result()
            return end
        self._num_losses[name] += 1
        if self._num_losses[name] > self._executor.max_requeues:
            return JobEnd(name, "failed", f"job {submitted.job_id} got lost: {error}")
        return JobEnd(name, "stopped")
