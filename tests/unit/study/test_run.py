"""Which run of a study comes next, and what remains to be done."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from shutil import copytree
from typing import Any, TypeAlias

import pytest

from elmo_framework.config.resolve import filled, with_absolute_paths
from elmo_framework.errors import RunError
from elmo_framework.experiment.metadata import digests_of_data
from elmo_framework.study import run as run_module
from elmo_framework.study.estimate import minutes_left
from elmo_framework.study.executor import JobEnd, RunJob
from elmo_framework.study.record import read_record
from elmo_framework.study.run import run_study
from elmo_framework.study.state import StudyState
from tests.experiment.jobs import DATA
from tests.experiment.studies import (
    SCORE,
    InlineExecutor,
    names,
    record_of,
    state_of,
    study,
    tagger,
    with_test_data,
)

SPACE = {"trainer.optimizer.lr": {"type": "uniform", "low": 0.01, "high": 0.1}}
Capture: TypeAlias = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "_POLL_SECONDS", 0.0)
    monkeypatch.setattr(run_module, "_REFRESH_SECONDS", 0.0)


def trained(
    state: StudyState,
    monkeypatch: pytest.MonkeyPatch,
    scores: Mapping[str, float] = {},
    *,
    num_jobs: int | None = None,
) -> list[str]:
    """Run a study whose jobs only write records; return the jobs in their order."""
    order: list[str] = []

    def job(job: RunJob) -> JobEnd:
        order.append(job.plan.name)
        score = scores.get(job.plan.name, 0.5)
        record_of(job.plan, state, score=score, test={SCORE: 0.4} if job.is_final else None)
        return JobEnd(job.plan.name, "done")

    monkeypatch.setattr(InlineExecutor, "job", staticmethod(job))
    with state.study.executor.start(num_jobs) as workers:
        result = run_study(state, workers)
    assert result.num_done == len({*order})  # a trial that is scored later is one run
    return order


def test_finished_runs_are_not_trained_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = state_of(study(), tmp_path)
    record_of(state.runs()[0].plan, state)
    assert trained(state, monkeypatch) == ["ner/wide/seed-1"]
    assert trained(state, monkeypatch) == []


def test_final_scores_all_runs_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = state_of(with_test_data(), tmp_path)
    assert trained(first, monkeypatch) == ["ner/default/seed-1"]
    final = state_of(with_test_data(), tmp_path, is_final=True)
    assert names(final) == {"ner/default/seed-1": "unscored"}
    assert trained(final, monkeypatch) == ["ner/default/seed-1"]
    assert read_record(final.folder.record("ner/default/seed-1")).test == {SCORE: 0.4}
    assert trained(final, monkeypatch) == []


def test_only_cells_with_runs_that_are_not_done_are_checked(tmp_path: Path) -> None:
    first = state_of(with_test_data(), tmp_path)
    assert first.unfinished_cells() == list(first.cells)
    record_of(first.runs()[0].plan, first)
    assert first.unfinished_cells() == []
    final = state_of(with_test_data(), tmp_path, is_final=True)
    assert final.unfinished_cells() == list(final.cells)


def test_plugins_of_the_study_reach_its_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = []

    def job(job: RunJob) -> JobEnd:
        packages.append(job.packages)
        return JobEnd(job.plan.name, "failed")

    monkeypatch.setattr(InlineExecutor, "job", staticmethod(job))
    state = state_of(study(plugins=["tests.experiment.jobs"]), tmp_path)
    with state.study.executor.start(None) as workers:
        run_study(state, workers, packages=["tests.experiment.task_check"])
    assert packages == [("tests.experiment.task_check", "tests.experiment.jobs")] * 2


def test_final_needs_test_data(tmp_path: Path) -> None:
    state = state_of(study(), tmp_path, is_final=True)
    with (
        state.study.executor.start(None) as workers,
        pytest.raises(RunError, match=r"--final needs a test_data_path or a test_fraction.*: ner"),
    ):
        run_study(state, workers)


def test_best_trial_is_trained_with_the_other_seeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = {"type": "grid", "space": {"model.encoder.hidden_size": [4, 5, 6]}}
    raw = study(seeds=[1, 2], search=search, configs={"ner": {"config": tagger(test_fraction=0.1)}})
    scores = {"ner/default/trial-001-seed-1": 0.9}
    order = trained(state_of(raw, tmp_path), monkeypatch, scores)
    assert order == [
        *(f"ner/default/trial-00{number}-seed-1" for number in range(3)),
        "ner/default/trial-001-seed-2",
    ]
    chosen = ["ner/default/trial-001-seed-1", "ner/default/trial-001-seed-2"]
    assert trained(state_of(raw, tmp_path, is_final=True), monkeypatch, scores) == chosen
    whole = trained(state_of(raw, tmp_path / "whole", is_final=True), monkeypatch, scores)
    assert sorted(whole) == sorted([*order, chosen[0]])


def test_trial_is_best_if_its_score_is_the_smallest_loss(tmp_path: Path) -> None:
    search = {"type": "list", "trials": [{"model.encoder.hidden_size": 4}, {"model.dropout": 0.1}]}
    configs = {"ner": {"config": tagger(), "metric": "-loss"}}
    state = state_of(study(search=search, configs=configs), tmp_path)
    for run, loss in zip(state.runs(), (2.0, 1.0), strict=True):
        record_of(run.plan, state, validation={"loss": loss})
    assert [run.is_chosen for run in state.runs()] == [False, True]


def test_pruned_and_failed_trials_are_never_the_best(tmp_path: Path) -> None:
    search = {"type": "grid", "space": {"model.encoder.hidden_size": [4, 5, 6]}}
    state = state_of(study(search=search, configs={"ner": {"config": tagger()}}), tmp_path)
    first, second, third = state.runs()
    record_of(first.plan, state, score=0.9, is_pruned=True)
    record_of(second.plan, state, score=0.1)
    state.failed[third.plan.name] = ""
    assert [run.is_chosen for run in state.runs()] == [False, True, False]


def test_runs_do_not_wait_for_layers_while_others_can_train(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elmo = {"type": "elmo_token_embedder", "bilm": "mini"}
    embedders = {"model": {"embedder": {"token_embedders": {"elmo": elmo}}}}
    variants = {"a-elmo": embedders, "b-elmo": embedders, "c": {}}
    raw = study(configs={"ner": {"config": tagger()}}, variants=variants)
    state = state_of(raw, tmp_path, num_jobs=2)
    # Two at a time: the second run would wait for the first, which computes the layers of both.
    submitted = []
    monkeypatch.setattr(
        "tests.experiment.studies.InlineWorkers.submit",
        lambda workers, job: (submitted.append(job.plan.variant), workers._jobs.append(job)),
    )
    trained(state, monkeypatch, num_jobs=2)
    assert submitted[:2] == ["a-elmo", "c"]


def test_run_that_another_process_trains_is_left_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = state_of(study(), tmp_path)
    first, second = state.runs()
    other = state_of(study(), tmp_path)
    lock = state.folder.lock(first.plan.name)
    lock.acquire()
    waited = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        record_of(first.plan, other)  # by the other process
        lock.release()

    monkeypatch.setattr(run_module.time, "sleep", sleep)
    assert trained(state, monkeypatch) == [second.plan.name]
    assert waited


def test_free_worker_gets_the_next_run_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_module.time, "sleep", lambda seconds: pytest.fail("waits"))
    assert len(trained(state_of(study(), tmp_path), monkeypatch, num_jobs=1)) == 2


@pytest.mark.parametrize(("minutes", "shown"), [(0.05, "3 seconds"), (1.0, "1.0 minutes")])
def test_short_runs_are_reported_in_seconds(
    minutes: float, shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    state = state_of(study(configs={"ner": {"config": tagger()}}), tmp_path)

    def job(job: RunJob) -> JobEnd:
        record_of(job.plan, state, minutes=minutes)
        return JobEnd(job.plan.name, "done")

    monkeypatch.setattr(InlineExecutor, "job", staticmethod(job))
    with state.study.executor.start(None) as workers:
        run_study(state, workers)
    assert capsys.readouterr().err == f"[1/1] ner/default/seed-1: {SCORE} 0.5 in {shown}\n"


def test_moved_data_are_no_other_config(tmp_path: Path) -> None:
    state = state_of(study(), tmp_path)
    record_of(state.runs()[0].plan, state)
    moved = study()
    moved["configs"]["ner"]["config"]["train_data_path"] = "elsewhere/train.txt"
    assert names(state_of(moved, tmp_path))["ner/none/seed-1"] == "done"
    (tmp_path / "train.txt").write_text("other O\n")
    moved["configs"]["ner"]["config"]["train_data_path"] = str(tmp_path / "train.txt")
    assert names(state_of(moved, tmp_path))["ner/none/seed-1"] == "changed"


def begin(state: StudyState, name: str) -> None:
    """Write the configs and digests of a run that was not finished."""
    run = next(run for run in state.runs() if run.plan.name == name)
    folder, parsed = state.folder.run(name), run.cell.parsed
    folder.path.mkdir(parents=True)
    filled_config = {**filled(with_absolute_paths(parsed)), "random_seed": run.plan.seed}
    folder.write_json(folder.config, filled_config)
    folder.write_json(folder.given, dict(run.plan.raw))
    digests = {"data": digests_of_data(parsed.build().files()), "bilm": {}}
    folder.write_json(folder.metadata, {"digests": digests})


def with_relative_paths() -> dict[str, Any]:
    """A study whose data are in `data`, and whose vectors are in a folder."""
    tokens = {"type": "embedding", "pretrained_file": "vectors"}
    paths = {f"{split}_data_path": f"data/{split}.txt" for split in ("train", "validation")}
    return study(
        configs={"ner": {"config": tagger(**paths)}},
        variants={"vectors": {"model": {"embedder": {"token_embedders": {"tokens": tokens}}}}},
    )


def test_unfinished_runs_move_with_their_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, now, name = tmp_path / "before", tmp_path / "now", "ner/vectors/seed-1"
    copytree(DATA, before / "data")
    (before / "data/valid.txt").rename(before / "data/validation.txt")
    (before / "vectors").mkdir()
    monkeypatch.chdir(before)
    begin(state_of(with_relative_paths(), before / "study"), name)
    before.rename(now)
    monkeypatch.chdir(now)
    assert names(state_of(with_relative_paths(), now / "study")) == {name: "unfinished"}
    (now / "data").rename(now / "texts")
    moved = json.loads(json.dumps(with_relative_paths()).replace("data/", "texts/"))
    assert names(state_of(moved, now / "study")) == {name: "unfinished"}
    (now / "texts/train.txt").write_text("other O\n")
    assert names(state_of(moved, now / "study")) == {name: "changed"}


def test_another_process_gets_a_trial_of_its_own(tmp_path: Path) -> None:
    search = {"type": "optuna", "num_trials": 4, "space": SPACE}
    raw = study(search=search, configs={"ner": {"config": tagger()}}, seeds=[1])
    first, second = (state_of(raw, tmp_path, num_jobs=1) for _ in range(2))
    (run,) = first.runs()
    first.running[run.plan.name] = run
    assert [*names(second)] == [run.plan.name]  # until it is locked, either may train it
    with first.folder.lock(run.plan.name):
        assert [*names(first)] == [run.plan.name]
        assert len(second.runs()) == len(first.runs()) == 2
        (other,) = (each for each in second.runs() if each.plan.name != run.plan.name)
        second.running[other.plan.name] = other
        with second.folder.lock(other.plan.name):
            assert len(second.runs()) == len(first.runs()) == 2
            record_of(run.plan, first)
            assert len(second.runs()) == 2
            assert len(first.runs()) == 3


def test_key_of_a_later_version_is_no_other_config(tmp_path: Path) -> None:
    state = state_of(study(), tmp_path)
    run = state.runs()[0]
    path = state.folder.record(run.plan.name)
    record_of(run.plan, state)
    record = json.loads(path.read_text())
    assert record["experiment"]["trainer"].pop("reduce_dtype") == "float32"
    path.write_text(json.dumps(record))
    assert names(state_of(study(), tmp_path))[run.plan.name] == "done"
    changed = study()
    changed["configs"]["ner"]["config"]["trainer"]["reduce_dtype"] = "bfloat16"
    assert names(state_of(changed, tmp_path))[run.plan.name] == "changed"


def test_damaged_record_is_refused_with_its_path(tmp_path: Path) -> None:
    state = state_of(study(), tmp_path)
    path = state.folder.record("ner/none/seed-1")
    path.parent.mkdir(parents=True)
    path.write_text('{"config": "ner"')
    with pytest.raises(RunError, match=r"seed-1\.json: this record is damaged"):
        names(state)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"minutes": "x"}, "minutes: Input should be a valid number, not 'x'"),
        ({"validation": 3}, "validation: Input should be .*, not 3"),
        ({"experiment": 3}, "experiment: Input should be .*, not 3"),
        ({"random_seed": "x"}, "experiment.random_seed: Input should be .*, not 'x'"),
        ({"plugins": 3}, "experiment.plugins: Input should be .*, not 3"),
        ({"model": {"type": "crf_tagger", "metrics": 3}}, "experiment.model.metrics: Input"),
        ({"trainer": {}}, "experiment.trainer.validation_metric: is required"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_record_with_a_field_of_another_type_is_damaged(
    tmp_path: Path, changes: dict[str, Any], problem: str
) -> None:
    state = state_of(study(), tmp_path)
    run = state.runs()[0]
    record_of(run.plan, state)
    path = state.folder.record(run.plan.name)
    content = json.loads(path.read_text())
    for key, value in changes.items():
        (content if key in content else content["experiment"])[key] = value
    path.write_text(json.dumps(content))
    with pytest.raises(RunError, match=rf"this record is damaged \({problem}"):
        read_record(path)


def test_estimate_uses_similar_runs_and_their_fraction(tmp_path: Path) -> None:
    state = state_of(study(fractions=[0.5, 1.0]), tmp_path)
    assert minutes_left(state, state.runs()) is None
    half = next(run for run in state.runs() if run.plan.fraction == 0.5)
    record_of(half.plan, state, minutes=3.0)
    # The other variant with half of the data takes 3 minutes, both with all data 6.
    assert minutes_left(state, state.runs()) == pytest.approx(3 + 6 + 6)
