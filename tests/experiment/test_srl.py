"""The shipped configs of semantic roles."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from elmo_framework.commands.main import main
from tests.experiment.jobs import ROOT
from tests.experiment.task_check import check_recovery, check_task

DATA = str(ROOT / "tests/fixtures/srl/sentences.gold_conll")
LABELING: dict[str, Any] = {
    "train_data_path": DATA,
    "validation_data_path": DATA,
    "model.embedder.token_embedders.tokens.embedding_dim": 8,
    "model.embedder.token_embedders.tokens.pretrained_file": None,
    "model.embedder.token_embedders.tokens.min_count": 2,
    "model.binary_feature_dim": 4,
    "model.encoder.hidden_size": 8,
    "model.encoder.num_layers": 2,
    "data_loader.batch_size": 4,
    "trainer.num_epochs": 8,
    "trainer.optimizer": {"type": "adam", "lr": 0.02},
    "trainer.patience": None,
}
INPUTS: list[Any] = ["Cats hunt.", {"tokens": ["Ann", "fed", "cats"], "predicates": [1, 2]}]


def check(name: str, directory: Path, bilm: Path) -> None:
    config = f"experiments/srl/{name}.jsonnet"
    run = check_task(config, directory, LABELING, inputs=INPUTS, bilm=bilm)
    found, asked = run.predict(INPUTS)
    assert [verb["verb"] for verb in found["verbs"]] == ["hunt"]
    assert [verb["predicate"] for verb in asked["verbs"]] == [1, 2]


def test_elmo_trains_saves_loads_and_predicts(tmp_path: Path, bilm: Path) -> None:
    check("elmo", tmp_path / "run", bilm)


@pytest.fixture(scope="module")
def baseline(bilm: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of the baseline, which has been checked as that with ELMo."""
    directory = tmp_path_factory.mktemp("srl") / "baseline"
    check("baseline", directory, bilm)
    return directory


def test_elmo_can_be_the_input_and_output_embedder(tmp_path: Path, bilm: Path) -> None:
    elmo = {"type": "elmo_token_embedder", "bilm": str(bilm)}
    changes = {**LABELING, "model.output_embedder": elmo}
    check_task("experiments/srl/elmo.jsonnet", tmp_path / "run", changes, inputs=INPUTS, bilm=bilm)


def test_srl_training_resumes_after_an_interruption(tmp_path: Path) -> None:
    check_recovery("experiments/srl/baseline.jsonnet", tmp_path, LABELING)


def test_predictions_are_written_for_the_official_scorer(
    baseline: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "inputs.jsonl"
    file.write_text(json.dumps(INPUTS[1]) + "\n")
    flags = ["--device", "cpu", "--predictions-format", "srl"]

    code = main(["predict", str(baseline), str(file), *flags])

    lines = capsys.readouterr().out.splitlines()
    assert code == 0
    assert [line.split("\t")[0] for line in lines] == ["-", "fed", "cats", ""]
    assert {len(line.split("\t")) for line in lines[:3]} == {3}
