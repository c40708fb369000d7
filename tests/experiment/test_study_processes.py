"""A study in several processes, any of which may be killed."""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections.abc import Callable
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock, Timeout

from elmo_framework.commands.main import main
from elmo_framework.study.executor import RunJob
from elmo_framework.study.local_executor import LocalExecutor
from elmo_framework.study.record import read_records
from tests.experiment.studies import state_of, study, tagger, write

_SECONDS = 300.0


def endless() -> dict[str, Any]:
    """A study of one run that does not end by itself."""
    raw = study(executor={"type": "local", "jobs": 1}, configs={"ner": {"config": tagger()}})
    raw["configs"]["ner"]["config"]["trainer"] |= {"num_epochs": 10**6}
    return raw


def forked(work: Callable[[], int], messages: Path) -> ForkProcess:
    """Do work in a process that has imported everything already; its result is the exit code."""

    def process() -> None:
        with messages.open("w", buffering=1) as sys.stderr:
            sys.exit(work())

    started = multiprocessing.get_context("fork").Process(target=process)
    started.start()
    return started


def start(path: Path, folder: Path, messages: str = "messages") -> ForkProcess:
    words = ["study", str(path), "-s", str(folder)]
    return forked(lambda: main(words), path.parent / messages)


def wait_for(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + _SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def checkpoints(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("runs/*/*/*/checkpoints/step-*")}


def is_locked(folder: Path) -> bool:
    try:
        with FileLock(folder / "runs/ner/default/.seed-1.lock").acquire(timeout=0):
            return False
    except Timeout:
        return True


@pytest.mark.slow
def test_run_ends_with_a_checkpoint_when_its_study_is_killed(tmp_path: Path) -> None:
    folder = tmp_path / "study"
    process = start(write(tmp_path, endless()), folder)
    wait_for(lambda: checkpoints(folder))
    process.kill()
    process.join()
    wait_for(lambda: not is_locked(folder))
    log = (folder / "logs/ner/default/seed-1.log").read_text()
    assert "Stopped by SIGTERM after step" in log
    assert "checkpoint saved" in log
    assert log.endswith("the study recovers this run when it is started again\n")


@pytest.mark.slow
def test_stop_signal_leaves_checkpoints_and_advice(tmp_path: Path) -> None:
    folder = tmp_path / "study"
    process = start(write(tmp_path, endless()), folder)
    wait_for(lambda: checkpoints(folder))
    process.terminate()
    process.join(_SECONDS)
    assert process.exitcode == 130
    error = (tmp_path / "messages").read_text()
    assert "SIGTERM: waiting for checkpoints of 1 run" in error
    assert error.endswith(
        "Stopped by SIGTERM; checkpoints saved. Run the same command again to resume.\n"
    )
    assert not is_locked(folder)


@pytest.mark.slow
def test_two_processes_share_a_study(tmp_path: Path) -> None:
    raw = study(seeds=[1, 2], executor={"type": "local", "jobs": 1})
    path, folder = write(tmp_path, raw), tmp_path / "study"
    processes = [start(path, folder, messages) for messages in ("one", "other")]
    for process in processes:
        process.join(_SECONDS)
    errors = [(tmp_path / messages).read_text() for messages in ("one", "other")]
    assert [process.exitcode for process in processes] == [0, 0], errors
    assert len(read_records(folder / "results")) == 4
    ends = [line.split()[1] for error in errors for line in error.splitlines() if line[0] == "["]
    assert sorted(set(ends)) == sorted(ends)  # none was trained twice


@pytest.mark.slow
def test_killed_worker_is_a_failure_with_its_signal(tmp_path: Path) -> None:
    process = forked(lambda: kill_a_worker(tmp_path), tmp_path / "messages")
    process.join(_SECONDS)
    assert process.exitcode == 0, (tmp_path / "messages").read_text()


def kill_a_worker(folder: Path) -> int:
    """Train a run whose process is killed, and train it again."""
    signalled = {"type": "signal_once", "step": 2, "name": "SIGKILL"}
    raw = study(configs={"ner": {"config": tagger()}}, plugins=["tests.experiment.jobs"])
    changes = {"callbacks": [signalled], "checkpointer": {"save_every": {"steps": 1}}}
    raw["configs"]["ner"]["config"]["trainer"] |= changes
    state = state_of(raw, folder)
    (run,) = state.runs()
    job = RunJob(run.plan, folder, packages=("tests.experiment.jobs",))
    outcomes: list[Any] = []
    with LocalExecutor(jobs=1).start(None) as workers:
        while len(outcomes) < 2:
            workers.submit(job)
            assert workers.num_free == 0
            while workers.num_free == 0:
                outcomes += workers.wait(1.0)
    killed, resumed = outcomes
    assert (killed.name, killed.outcome) == ("ner/default/seed-1", "failed")
    assert killed.message.startswith(
        "its process was ended by SIGKILL. The system does so when memory"
    )
    assert resumed.outcome == "done"
    assert "training (resumed at step" in state.folder.log(run.plan.name).read_text()
    return 0
