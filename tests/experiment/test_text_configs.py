"""The shipped configs of the tasks that give a text or a pair of texts one label."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from elmo_framework.commands.main import main
from tests.experiment.jobs import ROOT
from tests.experiment.task_check import check_recovery, check_task

SNLI = str(ROOT / "tests/fixtures/snli/pairs.jsonl")
SST = str(ROOT / "tests/fixtures/sst/trees.txt")
WORDS = "model.embedder.token_embedders.tokens"
EASY: dict[str, Any] = {
    f"{WORDS}.pretrained_file": None,
    f"{WORDS}.embedding_dim": 16,
    f"{WORDS}.trainable": True,
    "model.encoder.hidden_size": 16,
    "data_loader.batch_size": 4,
    "trainer.num_epochs": 20,
    "trainer.evaluate_every": {"epochs": 10},
    "trainer.optimizer.lr": 0.01,
    "trainer.patience": None,
}
ENTAILMENT: dict[str, Any] = {
    **EASY,
    "train_data_path": SNLI,
    "validation_data_path": SNLI,
    "model.projection_feedforward.hidden_dims": 8,
    "model.inference_encoder.hidden_size": 16,
    "model.output_feedforward.hidden_dims": 8,
    "model.dropout": 0.0,
    "trainer.learning_rate_scheduler": "constant",
}
NO_DROPOUT: dict[str, Any] = {
    "model.embedder.token_embedders.elmo.dropout": 0.0,
    "model.output_embedder.dropout": 0.0,
}
SENTIMENT: dict[str, Any] = {
    **EASY,
    "model.embedding_dropout": 0.0,
    "model.pre_encode_feedforward.dropout": 0.0,
    "model.integrator_dropout": 0.0,
    "model.output_layer.dropout": 0.0,
    "train_data_path": SST,
    "validation_data_path": SST,
    "model.pre_encode_feedforward.hidden_dims": 8,
    "model.integrator.hidden_size": 16,
    "model.output_layer.hidden_dims": [32, 32],
}
TOPICS: dict[str, Any] = {
    "dataset_reader": {"type": "text_classification_json"},
    "model": {
        "type": "basic_classifier",
        "embedder": {"token_embedders": {"tokens": {"type": "embedding", "embedding_dim": 16}}},
        "pooler": {"type": "bag_of_embeddings", "averaged": True},
    },
    "trainer": {"num_epochs": 40, "optimizer": {"type": "adam", "lr": 0.05}, "callbacks": []},
}
PAIRS = [
    {"premise": "A man reads.", "hypothesis": "Nobody reads."},
    {"premise": ["A", "man"], "hypothesis": ["Two", "boys", "sleep", "."]},
]
TEXTS = ["Good fun.", {"tokens": ["Too", "slow"]}]


@pytest.mark.parametrize(
    ("name", "changes"),
    [("baseline", {}), ("elmo", {**NO_DROPOUT, "model.attention_dropout": 0.0})],
)
def test_entailment_trains_saves_loads_and_predicts(
    name: str, changes: dict[str, Any], tmp_path: Path, bilm: Path
) -> None:
    config = f"experiments/snli/{name}.jsonnet"
    small = {**ENTAILMENT, **changes}
    run = check_task(config, tmp_path / "run", small, inputs=PAIRS, bilm=bilm)
    (prediction,) = run.predict(PAIRS[:1])
    assert prediction["hypothesis"] == ["Nobody", "reads", "."]
    assert set(prediction["probabilities"]) == {"entailment", "contradiction", "neutral"}


@pytest.mark.parametrize(("name", "changes"), [("baseline", {}), ("elmo", NO_DROPOUT)])
def test_sentiment_trains_saves_loads_and_predicts(
    name: str, changes: dict[str, Any], tmp_path: Path, bilm: Path
) -> None:
    config = f"experiments/sst/{name}.jsonnet"
    small = {**SENTIMENT, **changes}
    run = check_task(config, tmp_path / "run", small, inputs=TEXTS, bilm=bilm)
    (prediction,) = run.predict(TEXTS[:1])
    assert prediction["words"] == ["Good", "fun", "."]
    assert prediction["label"] in {"0", "1", "2", "3", "4"}


def test_ulmfit_trains_saves_loads_and_predicts(tmp_path: Path, bilm: Path) -> None:
    small = {
        "train_data_path": SST,
        "validation_data_path": SST,
        "data_loader.batch_size": 4,
        "trainer.num_epochs": 5,
    }
    run = check_task(
        "experiments/sst/ulmfit.jsonnet", tmp_path / "run", small, inputs=TEXTS, bilm=bilm
    )
    before = load_file(bilm / "weights.safetensors")
    last = max((tmp_path / "run").glob("checkpoints/step-*"))
    after = load_file(last / "model.safetensors")
    inner = {name[name.index("bilm.") :]: name for name in after if ".bilm." in name}
    assert inner
    assert not [name for name in inner if before[name].equal(after[inner[name]])]
    assert run.model.get_submodule("pooler").output_dim == 48


@pytest.mark.parametrize(
    ("task", "changes"), [("snli", ENTAILMENT), ("sst", SENTIMENT)], ids=["snli", "sst"]
)
def test_resume_after_a_stop_gives_the_same_weights(
    task: str, changes: dict[str, Any], tmp_path: Path, bilm: Path
) -> None:
    few = {**changes, "trainer.num_epochs": 2}
    check_recovery(f"experiments/{task}/elmo.jsonnet", tmp_path, few, bilm=bilm)


def test_an_evaluation_shows_which_label_is_taken_for_which(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topics = str(ROOT / "tests/fixtures/text_classification/topics.csv")
    config = tmp_path / "topics.json"
    config.write_text(json.dumps({**TOPICS, "train_data_path": topics}))
    assert main(["train", str(config), "-s", str(tmp_path / "run")]) == 0
    capsys.readouterr()

    assert main(["evaluate", str(tmp_path / "run"), topics]) == 0
    shown = capsys.readouterr().out
    assert main(["evaluate", str(tmp_path / "run"), topics, "--format", "json"]) == 0
    (scores,) = json.loads(capsys.readouterr().out).values()

    assert scores["accuracy"] == 1
    assert scores["confusion"] == {
        "cooking": {"cooking": 2, "sport": 0, "weather": 0},
        "sport": {"cooking": 0, "sport": 2, "weather": 0},
        "weather": {"cooking": 0, "sport": 0, "weather": 2},
    }
    _, _, table = shown.partition(f"confusion of {topics}, the right label on the left:\n\n")
    assert [line.split() for line in table.splitlines()[2:]] == [
        ["cooking", "2", "0", "0"],
        ["sport", "0", "2", "0"],
        ["weather", "0", "0", "2"],
    ]
