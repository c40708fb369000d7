"""A run that was stopped or killed goes on and ends as if nothing had happened."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from filelock import FileLock
from safetensors.torch import load_file

from elmo_framework.commands.main import main
from elmo_framework.training.interrupt import Interrupt
from elmo_framework.training.trainer import Trainer, TrainingResult
from tests.experiment.jobs import (
    DATA,
    PRETRAINING,
    ROOT,
    arguments,
    evaluations,
    run_forked,
    tagging_with,
    train,
)

PRETRAIN, NER = "experiments/pretrain/demo.jsonnet", "experiments/ner/elmo.jsonnet"
PACKAGE = ("--include-package", "tests.experiment.jobs")
OFTEN = {"trainer.checkpointer": {"save_every": {"steps": 3}}}


def same_weights(one: Path, other: Path) -> bool:
    first, second = (load_file(run / "weights.safetensors") for run in (one, other))
    return first.keys() == second.keys() and all(first[n].equal(second[n]) for n in first)


def interrupted_by(name: str, step: int, changes: dict[str, Any]) -> dict[str, Any]:
    """The same job with an observer that sends a signal after a step."""
    observer = {"type": "signal_once", "step": step, "name": name}
    return {**changes, "trainer.callbacks": ["tensorboard", observer]}


class Job(NamedTuple):
    """A training, what stops it, and the run that nothing has stopped."""

    config: str
    changes: dict[str, Any]
    num_steps: int
    signal: str
    whole: Path


@pytest.fixture(scope="module", params=["bilm", "tagger"])
def job(
    request: pytest.FixtureRequest, bilm: Path, tmp_path_factory: pytest.TempPathFactory
) -> Job:
    whole = tmp_path_factory.mktemp("recovery") / "whole"
    if request.param == "bilm":
        found = Job(PRETRAIN, {**PRETRAINING, "trainer.num_epochs": 1}, 22, "SIGTERM", whole)
    else:
        found = Job(NER, tagging_with(bilm, **{"trainer.num_epochs": 3}), 14, "SIGINT", whole)
    assert train(found.config, whole, found.changes) == 0
    return found


def test_a_killed_run_ends_as_an_uninterrupted_one(job: Job, tmp_path: Path) -> None:
    step, run = random.randint(1, job.num_steps), tmp_path / "run"
    killed = interrupted_by("SIGKILL", step, {**job.changes, **OFTEN})
    words = arguments(job.config, run, killed, *PACKAGE)
    assert run_forked(lambda: main(words)) == -signal.SIGKILL, f"alive at step {step}"
    assert train(job.config, run, killed, "--recover", *PACKAGE) == 0
    assert same_weights(run, job.whole), f"killed at step {step}"
    assert evaluations(run) == evaluations(job.whole)


def test_a_stopped_run_ends_as_an_uninterrupted_one(
    job: Job, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    stopped = interrupted_by(job.signal, 5, {**job.changes, **OFTEN})
    assert train(job.config, run, stopped) == 130
    said = f"Stopped by {job.signal} after step 5; checkpoint saved"
    assert said in capsys.readouterr().err
    assert train(job.config, run, stopped, "--recover") == 0
    assert same_weights(run, job.whole)
    assert evaluations(run) == evaluations(job.whole)


def test_a_stop_in_the_test_evaluation_is_repeated(
    bilm: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    tested = {"test_data_path": str(DATA / "valid.txt"), "evaluate_on_test": True}
    changes = tagging_with(bilm, **tested, **{"trainer.num_epochs": 1})
    run = Trainer.run

    def stopped_after(
        self: Trainer, checkpointer: Any, observers: Any, interrupt: Interrupt
    ) -> TrainingResult:
        result = run(self, checkpointer, observers, interrupt)
        os.kill(os.getpid(), signal.SIGTERM)
        return result

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "run", stopped_after)
        assert train(NER, tmp_path / "run", changes) == 130
    assert capsys.readouterr().err.endswith(
        "stopped by SIGTERM during the evaluation on the test data; --recover repeats it\n"
    )
    assert not (tmp_path / "run/metrics.json").exists()
    assert train(NER, tmp_path / "run", changes, "--recover") == 0
    metrics = json.loads((tmp_path / "run/metrics.json").read_text())
    assert metrics["test_loss"] == metrics["best_validation_loss"]


def test_recovering_a_finished_run_changes_nothing(tagger: Path, bilm: Path) -> None:
    before = (tagger / "weights.safetensors").read_bytes()
    assert train(NER, tagger, tagging_with(bilm), "--recover") == 0
    assert (tagger / "weights.safetensors").read_bytes() == before


def test_recovery_needs_the_same_config(
    tagger: Path, bilm: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changed = tagging_with(bilm, **{"trainer.num_epochs": 9, "model.dropout": 0.25})
    assert train(NER, tagger, changed, "--recover") == 2
    assert capsys.readouterr().err == (
        f"error: {tagger}: --recover needs the configuration that the run began with, as in "
        f"{tagger / 'config.json'}; it differs in\n"
        "  model.dropout: 0.5 -> 0.25\n"
        "  trainer.num_epochs: 4 -> 9\n"
    )


def test_recovery_knows_keys_that_an_earlier_version_did_not_have(
    tagger: Path, bilm: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = shutil.copytree(tagger, tmp_path / "run")
    config = json.loads((run / "filled_config.json").read_text())
    assert config["trainer"].pop("reduce_dtype") == "float32"
    (run / "filled_config.json").write_text(json.dumps(config))
    assert train(NER, run, tagging_with(bilm), "--recover") == 0
    changed = tagging_with(bilm, **{"trainer.reduce_dtype": "bfloat16"})
    assert train(NER, run, changed, "--recover") == 2
    assert "trainer.reduce_dtype: 'float32' -> 'bfloat16'" in capsys.readouterr().err


def test_recovery_needs_the_same_data(
    bilm: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "train.txt"
    data.write_text("Anna B-PER\nleft O\n\nIt O\nrained O\n")
    changes = tagging_with(bilm, train_data_path=str(data), **{"trainer.num_epochs": 1})
    changes |= {"validation_data_path": None, "trainer.patience": None}
    assert train(NER, tmp_path / "run", changes) == 0
    data.write_text("Anna B-PER\nstayed O\n")
    assert train(NER, tmp_path / "run", changes, "--recover") == 2
    assert "what the run reads has changed since" in capsys.readouterr().err


def test_recovery_needs_the_same_word_vectors(
    bilm: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("the 1 2\n")
    tokens = {"type": "embedding", "embedding_dim": 2, "pretrained_file": str(vectors)}
    embedders = {"model.embedder.token_embedders.tokens": tokens}
    changes = tagging_with(bilm, **embedders, **{"trainer.num_epochs": 1})
    assert train(NER, tmp_path / "run", changes) == 0
    vectors.write_text("the 1 3\n")
    assert train(NER, tmp_path / "run", changes, "--recover") == 2
    error = capsys.readouterr().err
    assert "what the run reads has changed since" in error
    assert "files.model.embedder.token_embedders.tokens.pretrained_file: " in error
    metadata = json.loads((tmp_path / "run/metadata.json").read_text())
    del metadata["digests"]["files"]  # as of an earlier version
    (tmp_path / "run/metadata.json").write_text(json.dumps(metadata))
    assert train(NER, tmp_path / "run", changes, "--recover") == 0
    tokens["pretrained_file"] = str(vectors.rename(tmp_path / "moved.txt"))
    assert train(NER, tmp_path / "run", changes, "--recover") == 0


def test_a_second_process_in_the_same_folder_is_refused(
    tagger: Path, bilm: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with FileLock(tagger / ".lock"):
        assert train(NER, tagger, tagging_with(bilm), "--recover") == 2
    assert "another process is training here" in capsys.readouterr().err


def test_a_folder_that_is_in_use_is_refused_without_a_flag(
    tagger: Path, bilm: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(NER, tagger, tagging_with(bilm)) == 2
    assert "the folder is not empty; pass --recover" in capsys.readouterr().err


def test_force_removes_a_run_and_nothing_else(
    bilm: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters/dear.txt").write_text("...")
    little = tagging_with(bilm, **{"trainer.num_epochs": 1})
    assert train(NER, tmp_path / "letters", little, "--force") == 2
    assert "it contains other files (dear.txt, ...)" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "letters").iterdir()] == ["dear.txt"]
    assert train(NER, tmp_path / "run", little) == 0
    assert train(NER, tmp_path / "run", little, "--force") == 0


def test_another_bilm_in_the_place_of_the_old_one_is_refused(
    bilm: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(bilm / "bilm", tmp_path / "bilm")
    little = tagging_with(tmp_path / "bilm", **{"trainer.num_epochs": 1})
    assert train(NER, tmp_path / "run", little) == 0
    options = tmp_path / "bilm/options.json"
    options.write_text(options.read_text() + "\n")
    assert main(["predict", str(tmp_path / "run"), str(ROOT / "README.md")]) == 2
    assert "is another model now than the one that this run was trained on" in (
        capsys.readouterr().err
    )
