"""Several processes train one model: one run, the scores of the whole data, the joint gradients."""

from __future__ import annotations

import json
import re
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from elmo_framework import load
from elmo_framework.commands.main import main
from elmo_framework.tasks.language_modeling.windows import WindowLoader
from tests.experiment.jobs import (
    DATA,
    PRETRAINING,
    arguments,
    evaluations,
    numbers,
    pretrain,
    run_python,
    tagging_with,
    train,
)
from tests.two_processes import in_two_processes

pytestmark = pytest.mark.slow

PRETRAIN, NER = "experiments/pretrain/demo.jsonnet", "experiments/ner/elmo.jsonnet"
PACKAGE = ("--include-package", "tests.experiment.jobs")
ON_CPU = {"trainer.num_epochs": 1, "trainer.device": "cpu"}


def train_in_two(config: str, directory: Path, changes: dict[str, Any], *flags: str) -> None:
    """Run `elmo train` in two processes like those of `torchrun`, to its end."""
    words = arguments(config, directory, changes, *PACKAGE, *flags)
    assert in_two_processes(lambda rank: sys.exit(main(words))) == [0, 0]


def bilm_changes(*, rows: int) -> dict[str, Any]:
    """A pretraining without chance in its updates, so that it can be compared with another."""
    return {
        **PRETRAINING,
        **ON_CPU,
        "model.num_samples": None,
        "model.dropout": 0.0,
        "model.state_reset_rate": 0.0,
        "model.context_layers.dropout": 0.0,
        "data_loader.batch_size": rows,
        "validation_data_loader.batch_size": 2 * rows,
        # Adam would make whole steps of what rounding leaves where a gradient is zero.
        "trainer.optimizer": {"type": "sgd", "lr": 0.05},
        "trainer.evaluate_every": {"steps": 3},
    }


@pytest.fixture(scope="module")
def bilm_of_two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of a biLM that two processes have pretrained, with four rows each."""
    directory = tmp_path_factory.mktemp("two") / "bilm"
    train_in_two(PRETRAIN, directory, bilm_changes(rows=4))
    return directory


@pytest.fixture(scope="module")
def tagger_of_two(bilm: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of a tagger that two processes have trained, with more examples for the first."""
    directory = tmp_path_factory.mktemp("two") / "tagger"
    uneven = {"dataset_reader.max_instances": 33, "model.metrics": ["confusion", "mcc"]}
    train_in_two(NER, directory, tagging_with(bilm, **ON_CPU, **uneven))
    return directory


def best_scores(directory: Path) -> dict[str, float]:
    metrics = json.loads((directory / "metrics.json").read_text())
    prefix = "best_validation_"
    scores = {
        name.removeprefix(prefix): metrics[name] for name in metrics if name.startswith(prefix)
    }
    return numbers(scores)


def parts(directory: Path) -> set[str]:
    """The names of the files in a run's last checkpoint."""
    return {path.name for path in max(directory.glob("checkpoints/step-*")).iterdir()}


def weights(directory: Path) -> dict[str, Tensor]:
    return load_file(directory / "weights.safetensors")


@pytest.mark.parametrize("job", ["bilm_of_two", "tagger_of_two"])
def test_two_processes_leave_one_run(job: str, request: pytest.FixtureRequest) -> None:
    directory = request.getfixturevalue(job)
    assert [path.name for path in directory.parent.iterdir()] == [directory.name]
    assert {"process-0.pt", "process-1.pt"} <= parts(directory)
    steps = [line["step"] for line in evaluations(directory)]
    assert steps == sorted(set(steps))
    assert len(list((directory / "log").iterdir())) == 1


def test_each_process_draws_its_own_numbers(bilm_of_two: Path) -> None:
    last = max(bilm_of_two.glob("checkpoints/step-*"))
    first, second = (
        torch.load(last / f"process-{rank}.pt", weights_only=True)["generators"]["torch"]
        for rank in (0, 1)
    )
    assert not first.equal(second)


def test_the_scores_of_a_tagger_are_those_of_the_whole_data(tagger_of_two: Path) -> None:
    scores = load(tagger_of_two, device="cpu").evaluate(DATA / "valid.txt")
    assert best_scores(tagger_of_two) == pytest.approx(scores, rel=1e-9)


def test_the_scores_of_a_bilm_are_those_of_the_rows_of_both(bilm_of_two: Path) -> None:
    run = load(bilm_of_two, device="cpu")
    loader = run.experiment.validation_data_loader
    assert isinstance(loader, WindowLoader)
    loader.batch_size *= 2
    scores = run.evaluate(DATA / "lm_valid.txt")
    assert best_scores(bilm_of_two) == pytest.approx(scores, rel=1e-6)


def test_two_processes_train_as_one_with_the_rows_of_both(
    bilm_of_two: Path, tmp_path: Path
) -> None:
    alone = pretrain(tmp_path / "alone", **bilm_changes(rows=8))
    for joint, single in zip(evaluations(bilm_of_two), evaluations(alone), strict=True):
        assert joint == pytest.approx(single, rel=1e-5)
    expected = weights(alone)
    assert weights(bilm_of_two).keys() == expected.keys()
    for name, held in weights(bilm_of_two).items():
        assert (held - expected[name]).abs().max() < 1e-5, name


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A run as `bilm_of_two` whose first process was killed, and what the other said of it."""
    folder = tmp_path_factory.mktemp("two")
    words = arguments(PRETRAIN, folder / "bilm", deadly(), *PACKAGE)

    def work(rank: int) -> None:
        with (folder / f"messages-{rank}").open("w", buffering=1) as sys.stderr:
            sys.exit(main(words))

    assert in_two_processes(work) == [-signal.SIGKILL, 2]
    return folder / "bilm", (folder / "messages-1").read_text()


def deadly() -> dict[str, Any]:
    observer = {"type": "signal_once", "step": 5, "name": "SIGKILL"}
    often = {"trainer.checkpointer": {"save_every": {"steps": 2}}}
    return {**bilm_changes(rows=4), **often, "trainer.callbacks": [observer]}


def test_the_death_of_one_process_ends_the_other_with_its_name(killed: tuple[Path, str]) -> None:
    assert re.search(
        r"error: process 1 of 2 cannot continue without process 0 \(pid \d+ on \S+\), which has "
        r"ended; resume with --recover\n",
        killed[1],
    )


def test_a_scheduler_stops_all_processes_with_a_checkpoint(tmp_path: Path) -> None:
    directory = tmp_path / "bilm"
    changes = {
        **bilm_changes(rows=4),
        "trainer.num_epochs": 1000,
        "trainer.callbacks": [{"type": "terminate_job", "step": 3}],
    }
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    words = arguments(PRETRAIN, directory, changes, *PACKAGE)
    done = run_python(*launch, "-m", "elmo_framework", *words)
    assert done.returncode != 0
    stops = set(re.findall(r"Stopped by SIGTERM after step (\d+); checkpoint saved", done.stderr))
    assert done.stderr.count("Stopped by SIGTERM") == 2
    assert done.stderr.count("the evaluation is repeated then.\n") == 2
    assert not (directory / "metrics.jsonl").read_text(), "an evaluation was waited for"
    assert {f"step-{int(step):09d}" for step in stops} == {
        path.name for path in (directory / "checkpoints").iterdir()
    }
    assert "SIGKILL" not in done.stderr, "torchrun has waited for 30 seconds"


def test_resume_with_as_many_processes_is_exact(
    killed: tuple[Path, str], bilm_of_two: Path, tmp_path: Path
) -> None:
    directory = copied(killed[0], tmp_path)
    train_in_two(PRETRAIN, directory, deadly(), "--recover")
    assert evaluations(directory) == evaluations(bilm_of_two)
    expected = weights(bilm_of_two)
    assert all(held.equal(expected[name]) for name, held in weights(directory).items())


def test_resume_with_another_number_of_processes_warns(
    killed: tuple[Path, str], bilm_of_two: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory = copied(killed[0], tmp_path)
    assert train(PRETRAIN, directory, deadly(), "--recover", *PACKAGE) == 0
    assert "written by 2 processes, but 1 are running" in caplog.text
    # Alone it delivers half as many words an update, of what the two had left of the epoch.
    left_for_two = last_step(bilm_of_two) - 4
    assert abs(last_step(directory) - 4 - 2 * left_for_two) <= 1


def last_step(directory: Path) -> float:
    return evaluations(directory)[-1]["step"]


def copied(directory: Path, folder: Path) -> Path:
    """Return a copy of a run whose signal was sent."""
    copy = folder / directory.name
    shutil.copytree(directory, copy)
    copy.with_name(f"{copy.name}-signalled-5").touch()
    return copy
