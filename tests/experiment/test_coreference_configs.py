"""The shipped configs of coreference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.experiment.jobs import ROOT, evaluations, tagging_with, train
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


def test_documents_are_cached_and_read_as_running_text(tmp_path: Path, bilm: Path) -> None:
    losses = []
    for cache in ("memory", "none"):
        elmo = {"state": "document", "cache": cache, "cache_dtype": "float32", "bilm": str(bilm)}
        changes = {f"model.context_embedder.{key}": value for key, value in elmo.items()}
        brief = {**SMALL, **changes, "trainer.num_epochs": 1}
        config = "experiments/coreference/elmo.jsonnet"
        assert train(config, tmp_path / cache, brief) == 0
        losses.append(evaluations(tmp_path / cache)[-1]["loss"])
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_sentences_without_documents_are_refused(tmp_path: Path, bilm: Path, capsys) -> None:
    changes = tagging_with(bilm, **{f"{WORDS}.elmo.state": "document"})
    assert train("experiments/ner/elmo.jsonnet", tmp_path / "run", changes) == 2
    assert "the examples of this task are single sentences" in capsys.readouterr().err
