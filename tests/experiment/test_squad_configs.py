"""Every shipped config of question answering on a few questions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.experiment.jobs import ROOT, train
from tests.experiment.task_check import check_recovery, check_task

DATA = str(ROOT / "tests/fixtures/squad/train.json")
NO_ANSWER = str(ROOT / "tests/fixtures/squad/no_answer.json")
WORDS = "model.embedder.token_embedders"
GENERAL: dict[str, Any] = {
    "train_data_path": DATA,
    "validation_data_path": DATA,
    f"{WORDS}.tokens.embedding_dim": 4,
    f"{WORDS}.token_characters.encoder.num_filters": 6,
    "model.encoder.hidden_size": 6,
    "model.span_end_encoder.hidden_size": 6,
    "trainer.num_epochs": 3,
    "trainer.evaluate_every": {"epochs": 1},
    "trainer.optimizer": {"type": "adam", "lr": 0.01},
    "trainer.moving_average": {"decay": 0.5},
}
SELF_ATTENTION = {
    **GENERAL,
    "model.residual_encoder.hidden_size": 6,
    "model.span_start_encoder.hidden_size": 6,
    "model.projection_dim": 10,
}
BIDAF = {**GENERAL, "model.modeling_layer.hidden_size": 6}
CONFIGS = {
    "baseline": SELF_ATTENTION,
    "no_answer": {
        **SELF_ATTENTION,
        "train_data_path": NO_ANSWER,
        "validation_data_path": NO_ANSWER,
    },
    "elmo": SELF_ATTENTION,
    "bidaf": BIDAF,
    "bidaf_elmo": BIDAF,
}
INPUTS = [
    {"question": "Who was the keeper?", "passage": "The keeper, Anna Lund, bought a burner."},
    {"question": "When?", "passage": "In 1904.", "id": "q2"},
]


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of vectors for some words of the fixture."""
    path = tmp_path_factory.mktemp("vectors") / "vectors.txt"
    words = ["the", "lighthouse", "1871", "anna", "lund", "queen"]
    path.write_text("".join(f"{word} {i}.5 0.1 -{i}.2 1.0\n" for i, word in enumerate(words)))
    return path


@pytest.mark.parametrize("name", sorted(CONFIGS))
def test_a_config_trains_saves_loads_and_predicts(name, tmp_path, vectors, bilm):
    changes = {**CONFIGS[name], f"{WORDS}.tokens.pretrained_file": str(vectors)}
    config = f"experiments/squad/{name}.jsonnet"

    refused = () if name == "no_answer" else ("squad_no_answer", "squad_spans")
    run = check_task(config, tmp_path / "run", changes, inputs=INPUTS, bilm=bilm, refused=refused)

    (found,) = run.predict(INPUTS[:1])
    if found["start"] is None:
        assert (found["answer"], name) == ("", "no_answer")
    else:
        assert found["answer"] == INPUTS[0]["passage"][found["start"] : found["end"]]


def test_plain_model_names_the_unanswerable_question(tmp_path, vectors, capsys):
    changes = {
        **BIDAF,
        f"{WORDS}.tokens.pretrained_file": str(vectors),
        "trainer.device": "cpu",
        "trainer.callbacks": [],
        "train_data_path": NO_ANSWER,
    }

    assert train("experiments/squad/bidaf.jsonnet", tmp_path / "run", changes) == 2

    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith(f"error: {NO_ANSWER}: question '")
    assert "' has no answer; set 'no_answer: true' in the model" in error


def test_resume_restores_averaged_weights(tmp_path, vectors):
    changes = {**SELF_ATTENTION, f"{WORDS}.tokens.pretrained_file": str(vectors)}
    check_recovery("experiments/squad/baseline.jsonnet", tmp_path, changes)
