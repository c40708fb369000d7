"""The shipped configs of coreference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.experiment.jobs import ROOT
from tests.experiment.task_check import check_recovery, check_task

DATA = str(ROOT / "tests/fixtures/coreference/train.conll")
WORDS = "model.embedder.token_embedders"
SMALL: dict[str, Any] = {
    "train_data_path": DATA,
    "validation_data_path": DATA,
    f"{WORDS}.tokens": {"type": "embedding", "embedding_dim": 8},
    f"{WORDS}.turian": {"type": "embedding", "embedding_dim": 4},
    f"{WORDS}.token_characters.encoder.num_filters": 4,
    "model.encoder.hidden_size": 8,
    "model.mention_feedforward.hidden_dims": 8,
    "model.antecedent_feedforward.hidden_dims": 8,
    "model.max_training_sentences": 3,
    "trainer.num_epochs": 6,
    "trainer.optimizer.lr": 0.01,
}
INPUTS = [
    {"document": "Anna mended the boat. She sold it."},
    {"sentences": [["I", "met", "Ada", "."], ["She", "left", "."]], "genre": "bc"},
    "Rain fell.",
]


@pytest.mark.parametrize("name", ["baseline", "elmo"])
def test_a_config_trains_saves_loads_and_predicts(name: str, tmp_path: Path, bilm: Path) -> None:
    config = f"experiments/coreference/{name}.jsonnet"
    run = check_task(config, tmp_path / "run", SMALL, inputs=INPUTS, bilm=bilm)
    (found,) = run.predict(INPUTS[:1])
    assert found["document"] == ["Anna", "mended", "the", "boat", ".", "She", "sold", "it", "."]
    assert len(found["top_spans"]) == int(0.4 * 9)


def test_recovery_draws_the_same_windows(tmp_path: Path) -> None:
    check_recovery("experiments/coreference/baseline.jsonnet", tmp_path, SMALL)
