"""A masked language model: trained, resumed, continued, frozen under a head, not scored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from elmo_framework.commands.main import main
from tests.experiment.jobs import PRETRAINING, evaluations, tagging_with, train

MASKED, NER = "experiments/pretrain/today/masked_lm.jsonnet", "experiments/ner/elmo.jsonnet"
CHANGES: dict[str, Any] = {
    **{key: value for key, value in PRETRAINING.items() if "context_layers" not in key},
    "dataset_reader.type": "language_modeling",
    "validation_dataset_reader": None,
    "model.token_encoder.num_highway": 0,
    "model.context_layers": {
        "type": "bidirectional_transformer",
        "num_heads": 2,
        "head_dim": 4,
        "feedforward_dim": 16,
        "num_layers": 2,
    },
    "model.max_vocabulary_size": None,
    "trainer.learning_rate_scheduler": "constant",
    "trainer.num_epochs": 1,
    "trainer.num_steps": 8,
    "trainer.evaluate_every": {"steps": 4},
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("masked") / "run"
    assert train(MASKED, directory, CHANGES) == 0
    return directory


def test_a_stopped_training_resumes_bit_for_bit(run: Path, tmp_path: Path) -> None:
    stop = {"type": "signal_once", "step": 5, "name": "SIGINT"}
    stopped = {**CHANGES, "trainer.callbacks": ["tensorboard", stop]}
    package = ("--include-package", "tests.experiment.jobs")
    assert train(MASKED, tmp_path / "run", stopped, *package) == 130
    assert train(MASKED, tmp_path / "run", stopped, "--recover", *package) == 0
    assert evaluations(tmp_path / "run") == evaluations(run)
    ours, theirs = (load_file(each / "weights.safetensors") for each in (tmp_path / "run", run))
    assert all(ours[name].equal(theirs[name]) for name in ours.keys() | theirs.keys())


def test_training_continues_from_its_files(run: Path, tmp_path: Path) -> None:
    start = {
        "init_from": {"path": str(run / "bilm"), "reset_optimizer": True},
        "trainer.evaluate_at_start": True,
        "trainer.num_steps": 1,
    }
    assert train(MASKED, tmp_path / "run", {**CHANGES, **start}) == 0
    best = json.loads((run / "metrics.json").read_text())["best_validation_masked_perplexity"]
    assert evaluations(tmp_path / "run")[0]["masked_perplexity"] == pytest.approx(best)


def test_a_tagger_reads_the_cached_layers(run: Path, tmp_path: Path) -> None:
    for cache in ("none", "memory"):
        elmo = {"model.embedder.token_embedders.elmo.cache": cache, "trainer.num_epochs": 1}
        assert train(NER, tmp_path / cache, tagging_with(run, **elmo)) == 0
    first, second = (evaluations(tmp_path / cache)[-1] for cache in ("none", "memory"))
    assert first["loss"] == pytest.approx(second["loss"], rel=1e-2)


@pytest.mark.parametrize("command", ["score", "evaluate"])
def test_sentences_have_no_probability(command, run: Path, tmp_path: Path, capsys) -> None:
    text = tmp_path / "text.txt"
    text.write_text("Rain fell .\n")
    assert main([command, str(run / "bilm"), str(text)]) == 2
    assert "predicts masked words from both sides" in capsys.readouterr().err
