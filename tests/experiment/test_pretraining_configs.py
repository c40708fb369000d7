"""The shipped configs of pretraining that no other test trains, for a few updates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from elmo_framework import load
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
