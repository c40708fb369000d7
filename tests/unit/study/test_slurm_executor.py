"""Jobs of Slurm, with answers of submitit that are made up."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any, final

import pytest

from elmo_framework import components
from elmo_framework.config.parse import parse
from elmo_framework.errors import BuildError, RunError
from elmo_framework.study.executor import Executor, JobEnd, RunJob, Workers
from elmo_framework.study.folder import StudyFolder
from elmo_framework.study.run_plan import RunPlan
from elmo_framework.study.slurm_executor import SlurmExecutor

components.load()


@final
class FakeJob:
    """A job of submitit that has ended, with a result or with an error."""

    job_id = "17"

    def __init__(self, result: JobEnd | None) -> None:
        self._result, self.is_cancelled = result, False

    def done(self) -> bool:
        return True

    def exception(self) -> Exception | None:
        return None if self._result else ValueError("no result: node failure")

    def result(self) -> JobEnd | None:
        return self._result

    def cancel(self) -> None:
        self.is_cancelled = True


def job(folder: Path, *, seed: int = 1) -> RunJob:
    plan = RunPlan("ner", "mini", seed, 1.0, "+f1", {}, None, "study.jsonnet")
    return RunJob(plan, folder)


def executor(**raw: Any) -> SlurmExecutor:
    built = parse(Executor, {"type": "slurm", "cluster": "local", **raw}, source="study").build()
    assert isinstance(built, SlurmExecutor)
    return built


@pytest.fixture
def submitted(monkeypatch: pytest.MonkeyPatch) -> list[FakeJob]:
    """The jobs that `submit` returns next."""
    jobs: list[FakeJob] = []
    monkeypatch.setattr(SlurmExecutor, "submit", lambda self, job: jobs.pop(0))
    return jobs


def ends(workers: Workers, run: RunJob) -> list[JobEnd]:
    workers.submit(run)
    return list(workers.wait(1.0))


def test_a_job_ends_with_its_result(submitted: list[FakeJob], tmp_path: Path) -> None:
    submitted.append(FakeJob(JobEnd("ner/mini/seed-1", "done")))
    with executor().start(None) as workers:
        assert ends(workers, job(tmp_path)) == [JobEnd("ner/mini/seed-1", "done")]
        assert workers.wait(1.0) == []


def test_a_lost_job_is_resumed_a_few_times(submitted: list[FakeJob], tmp_path: Path) -> None:
    submitted += [FakeJob(None) for _ in range(3)]
    with executor(max_requeues=2).start(None) as workers:
        results = [ends(workers, job(tmp_path))[0] for _ in range(3)]
    assert [each.outcome for each in results] == ["stopped", "stopped", "failed"]
    assert results[-1].message == "job 17 got lost: no result: node failure"


def test_no_more_jobs_are_submitted_than_asked_for(
    submitted: list[FakeJob], tmp_path: Path
) -> None:
    submitted += [FakeJob(None), FakeJob(None)]
    with executor(jobs=5).start(3) as workers:
        assert workers.num_free == 3
        workers.submit(job(tmp_path, seed=1))
        workers.submit(job(tmp_path, seed=2))
        assert workers.num_free == 1


def test_open_jobs_are_cancelled_at_the_end(submitted: list[FakeJob], tmp_path: Path) -> None:
    fake = FakeJob(None)
    submitted.append(fake)
    with executor().start(None) as workers:
        workers.submit(job(tmp_path))
    assert fake.is_cancelled


@final
class FakeLock:
    """A lock that notes when it is waited for."""

    def __init__(self, waited_for: list[str], name: str) -> None:
        self._waited_for, self._name = waited_for, name

    def acquire(self, timeout: float) -> nullcontext[None]:
        self._waited_for.append(self._name)
        return nullcontext()


def test_a_stop_waits_for_the_checkpoint(
    submitted: list[FakeJob], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited_for: list[str] = []
    monkeypatch.setattr(StudyFolder, "lock", lambda self, name: FakeLock(waited_for, name))
    submitted.append(FakeJob(None))
    with executor().start(None) as workers:
        workers.submit(job(tmp_path))
        workers.stop()
    assert waited_for == ["ner/mini/seed-1"]


def test_unknown_parameters_of_submitit_are_user_errors(tmp_path: Path) -> None:
    wrong = executor(parameters={"slurm_partitoin": "gpu"})
    with pytest.raises(RunError, match=r"executor: submitit cannot submit a job: .*partitoin"):
        wrong.submit(job(tmp_path))


def test_without_slurm_the_error_says_so(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"executor: submitit cannot submit a job: .*srun"):
        executor(cluster="slurm").submit(job(tmp_path))


def test_without_submitit_the_message_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "submitit", None)
    with pytest.raises(
        BuildError, match=r"submitit is not installed; run: pip install .*\[slurm\]"
    ):
        executor()
