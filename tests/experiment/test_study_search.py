"""Searches of a study, with real trainings and with jobs that only write records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from elmo_framework.commands.main import main
from elmo_framework.study import run as run_module
from elmo_framework.study.executor import JobEnd, RunJob
from elmo_framework.study.record import read_records
from elmo_framework.study.run import run_study
from elmo_framework.study.state import StudyState
from tests.experiment.studies import (
    SCORE,
    InlineExecutor,
    record_of,
    state_of,
    study,
    tagger,
    write,
)

LEARNING_RATE = "trainer.optimizer.lr"
NUM_TRIALS = 6


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "_POLL_SECONDS", 0.0)
    monkeypatch.setattr(run_module, "_REFRESH_SECONDS", 0.0)


def optuna_study(**changes: Any) -> dict[str, Any]:
    space = {
        LEARNING_RATE: {"type": "log_uniform", "low": 1e-4, "high": 1e-1},
        "model.encoder.hidden_size": {"values": [4, 6, 8]},
    }
    search = {
        "type": "optuna",
        "space": space,
        "num_trials": NUM_TRIALS,
        "num_startup_trials": 2,
        "pruner": "none",
        **changes,
    }
    return study(configs={"ner": {"config": tagger()}}, seeds=[1, 2], search=search)


def run_with_records(
    state: StudyState, monkeypatch: pytest.MonkeyPatch, *, killed_at: int | None = None
) -> None:
    """Run a study whose jobs write a score that follows from the learning rate."""
    names: list[str] = []

    def job(job: RunJob) -> JobEnd:
        if len(names) == killed_at:
            raise KeyboardInterrupt
        names.append(job.plan.name)
        score = 1 - abs(job.plan.overrides[LEARNING_RATE] - 0.01)
        record_of(job.plan, state, score=score)
        return JobEnd(job.plan.name, "done")

    monkeypatch.setattr(InlineExecutor, "job", staticmethod(job))
    with state.study.executor.start(None) as workers:
        run_study(state, workers)


def records(folder: Path) -> dict[str, Any]:
    return {each.name: each.overrides for each in read_records(folder / "results")}


@pytest.mark.parametrize("killed_at", [0, 1, 3, NUM_TRIALS])
def test_a_search_that_was_killed_continues_as_if_not(
    killed_at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_with_records(state_of(optuna_study(), tmp_path / "whole"), monkeypatch)
    state = state_of(optuna_study(), tmp_path / "killed")
    with pytest.raises(KeyboardInterrupt):
        run_with_records(state, monkeypatch, killed_at=killed_at)
    run_with_records(state_of(optuna_study(), tmp_path / "killed"), monkeypatch)
    assert records(tmp_path / "killed") == records(tmp_path / "whole")
    assert len(records(tmp_path / "whole")) == NUM_TRIALS + 1


def test_the_best_is_not_chosen_before_the_last_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(KeyboardInterrupt):
        run_with_records(state_of(optuna_study(), tmp_path), monkeypatch, killed_at=3)
    resumed = state_of(optuna_study(), tmp_path, num_jobs=1)
    assert [run.is_chosen for run in resumed.runs()] == [False] * 4


def test_each_trial_is_trained_with_several_seeds_if_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = {"type": "list", "trials": [{LEARNING_RATE: 0.5}, {LEARNING_RATE: 0.1}]}
    raw = study(
        configs={"ner": {"config": tagger()}},
        seeds=[1, 2, 3],
        search={**search, "num_seeds": 2},
    )
    run_with_records(state_of(raw, tmp_path), monkeypatch)
    assert sorted(records(tmp_path)) == [
        "ner/default/trial-000-seed-1",
        "ner/default/trial-000-seed-2",
        *(f"ner/default/trial-001-seed-{seed}" for seed in (1, 2, 3)),
    ]


def test_the_best_trial_has_the_best_mean_over_its_seeds(tmp_path: Path) -> None:
    search = {"type": "list", "trials": [{LEARNING_RATE: 0.5}, {LEARNING_RATE: 0.1}]}
    raw = study(
        configs={"ner": {"config": tagger()}}, seeds=[1, 2], search={**search, "num_seeds": 2}
    )
    state = state_of(raw, tmp_path)
    scores = {"000": (0.9, 0.1), "001": (0.6, 0.7)}
    for run in state.runs():
        record_of(run.plan, state, score=scores[run.plan.trial or ""][run.plan.seed - 1])
    chosen = {run.plan.trial for run in state.runs() if run.is_chosen}
    assert chosen == {"001"}


def test_a_hopeless_run_is_pruned_and_on_record(tmp_path: Path) -> None:
    config = tagger()
    config["trainer"] |= {"num_epochs": 2, "validation_metric": "-loss"}
    search = {
        "type": "optuna",
        "space": {LEARNING_RATE: {"values": [0.02, 1e-9]}},
        "num_trials": 2,  # with this seed, the good one is first
        "sampler": "random",
        "num_startup_trials": 1,
        "seed": 2,
    }
    raw = study(configs={"ner": {"config": config}}, seeds=[1, 2], search=search)
    assert main(["study", str(write(tmp_path, raw)), "-s", str(tmp_path / "out")]) == 0
    by_rate: dict[float, list[Any]] = {0.02: [], 1e-9: []}
    for record in read_records(tmp_path / "out/results"):
        by_rate[record.overrides[LEARNING_RATE]].append(record)
    assert {record.is_pruned for record in by_rate[0.02]} == {False}
    assert {record.is_pruned for record in by_rate[1e-9]} == {True}
    steps = [record.training["training_steps"] for record in by_rate[1e-9]]
    assert max(steps) < min(record.training["training_steps"] for record in by_rate[0.02])
    assert "loss" in by_rate[1e-9][0].validation
    table = (tmp_path / "out/table.md").read_text()
    assert "| pruned |" in table


def test_unknown_keys_and_wrong_values_of_a_space_are_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    space = {
        "model.encoder.hiden_size": [4, 8],
        "trainer.optimizer.lr": [0.1, "fast"],
        "trainer.patience": [1],
    }
    raw = study(search={"type": "grid", "space": space})
    assert main(["check", str(write(tmp_path, raw))]) == 2
    message = capsys.readouterr().err
    assert "search.space.model.encoder.hiden_size" in message
    assert "Did you mean 'hidden_size'?" in message
    assert "search.space.trainer.optimizer.lr" in message
    assert "not 'fast'" in message
    assert "patience" not in json.dumps(message.split("not 'fast'")[1])


def test_finished_runs_show_in_the_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, study(comparisons=[["wide", "none"]]))
    assert main(["study", str(path), "-s", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out.splitlines() == [
        str(tmp_path / "out/table.md"),
        str(tmp_path / "out/report.html"),
    ]
    table = (tmp_path / "out/table.md").read_text()
    assert f"{SCORE} in %; larger is better.\n" in table
    assert table.count("results/ner/wide/seed-1.json") == 1


def test_runs_that_a_search_adds_later_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, folder = str(write(tmp_path, optuna_study())), tmp_path / "out"
    words = ["-s", str(folder)]
    assert main(["study", path, *words, "--dry-run"]) == 0
    assert "0/7 done; no estimate" in capsys.readouterr().out
    assert not folder.exists()
    with pytest.raises(KeyboardInterrupt):
        run_with_records(state_of(optuna_study(), folder), monkeypatch, killed_at=3)
    capsys.readouterr()
    assert main(["study", path, *words, "--dry-run"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == (
        "3/7 done; 0:08:00 of training left; the search adds 3 runs to this list"
    )
    assert main(["check", path, *words]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        "",
        "7 runs, 1 config, 1 variant, 1 fraction, 2 seeds, 6 trials",
        f"{folder}: 3 done, 4 missing",
    ]
    run_with_records(state_of(optuna_study(), folder), monkeypatch)
    capsys.readouterr()
    assert main(["check", path, *words, "--format", "json"]) == 0
    checked = json.loads(capsys.readouterr().out)
    assert (checked["runs"], checked["states"]) == (7, {"done": 7})


def test_progress_counts_the_runs_of_the_whole_search(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run_with_records(state_of(optuna_study(), tmp_path), monkeypatch)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[0] for line in lines] == [f"[{number}/7]" for number in range(1, 8)]
