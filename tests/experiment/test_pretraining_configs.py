"""The shipped configs of pretraining that no other test trains, for a few updates."""

from __future__ import annotations

from math import exp
from pathlib import Path
from typing import Any

import pytest

from elmo_framework import load
from elmo_framework.commands.main import main
from tests.conftest import ROOT
from tests.experiment.jobs import PRETRAINING, evaluations, train

BRIEF: dict[str, Any] = {
    **PRETRAINING,
    "model.token_encoder.num_highway": 1,
    "model.max_vocabulary_size": None,
    "model.min_count": 2,
    "trainer.num_steps": 3,
}


def perplexities(directory: Path) -> list[float]:
    return [line["perplexity"] for line in evaluations(directory)]


def test_the_original_size_is_trained_by_its_recipe(tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert train("experiments/pretrain/original.jsonnet", run, BRIEF) == 0
    assert evaluations(run)[-1]["step"] == 3


def test_a_bilm_is_fine_tuned_from_its_files(bilm: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    changes = {**BRIEF, "init_from.path": str(bilm / "bilm")}
    assert train("experiments/pretrain/fine_tune.jsonnet", run, changes) == 0
    before, after = perplexities(run)
    whole = load(bilm, device="cpu").evaluate(PRETRAINING["validation_data_path"])
    assert before == pytest.approx(whole["perplexity"], rel=1e-5)
    assert after != before


def test_fine_tuning_unfreezes_layers_of_a_bilm(bilm: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    changes = {**BRIEF, "init_from.path": str(bilm / "bilm"), "trainer.unfreezing": {}}
    assert train("experiments/pretrain/fine_tune.jsonnet", run, changes) == 0
    # In the only epoch nothing below the softmax is trained.
    before, after = ((folder / "bilm/weights.hdf5").read_bytes() for folder in (bilm, run))
    assert before == after
    assert perplexities(run)[0] != perplexities(run)[1]


def test_a_checkpoint_of_bilm_tf_is_trained_further(tmp_path: Path) -> None:
    theirs, config, run = (
        ROOT / "tests/fixtures/bilm_tf",
        tmp_path / "job.jsonnet",
        tmp_path / "run",
    )
    vocabulary = str(theirs / "vocab.txt")
    assert (
        main(["import", str(theirs), "-s", str(tmp_path / "bilm"), "--vocab-file", vocabulary]) == 0
    )
    config.write_text(f"""
        local bilm_tf = import '{ROOT}/experiments/lib/bilm_tf.libsonnet';
        bilm_tf.pretraining(import '{theirs}/options.json') + {{
          dataset_reader: {{ type: 'language_modeling' }},
          vocabulary: {{ words_file: '{vocabulary}' }},
          datasets_for_vocab_creation: [],
        }}
    """)
    (tmp_path / "text.txt").write_text("the dog w3 barks w7 .\n" * 20)
    text = str(tmp_path / "text.txt")
    changes = {
        "train_data_path": text,
        "validation_data_path": text,
        "init_from": {"path": str(tmp_path / "bilm")},
        "trainer.optimizer.lr": 0.01,
    }
    assert train(str(config), run, changes) == 0
    # bilm-tf's own loss for this sentence is 2.55 nats; random weights would begin at 36.
    assert perplexities(run)[-1] < exp(2.55)
