"""Pretraining, resuming, export, scores and frozen use with each kind of context layers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import elmo_framework
from elmo_framework.bilm.files.load import bilm_files
from elmo_framework.commands.main import main
from elmo_framework.experiment.load_run import export_bilm
from tests.experiment.jobs import PRETRAINING, evaluations, tagging_with, train

DEMO, NER = "experiments/pretrain/demo.jsonnet", "experiments/ner/elmo.jsonnet"
LAYERS: dict[str, dict[str, Any]] = {
    "transformer": {"num_heads": 2, "head_dim": 4, "feedforward_dim": 16, "memory_size": 6},
    "gru": {"cell_size": 8},
    "linear_recurrence": {"cell_size": 8, "num_layers": 2},
}


def changes(name: str) -> dict[str, Any]:
    own = {key: value for key, value in PRETRAINING.items() if "context_layers" not in key}
    return {
        **own,
        "model.context_layers": {"type": name, "dropout": 0.1, **LAYERS[name]},
        "model.state_reset_rate": 0.2,
        "trainer.optimizer": {"type": "adamw", "lr": 0.01},
        "trainer.num_epochs": 1,
        "trainer.num_steps": 8,
        "trainer.evaluate_every": {"steps": 4},
    }


@pytest.fixture(scope="module", params=LAYERS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def run(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp(kind) / "run"
    assert train(DEMO, directory, changes(kind)) == 0
    return directory


def test_a_stopped_training_resumes_bit_for_bit(kind: str, run: Path, tmp_path: Path) -> None:
    stop = {"type": "signal_once", "step": 5, "name": "SIGINT"}
    stopped = {**changes(kind), "trainer.callbacks": ["tensorboard", stop]}
    package = ("--include-package", "tests.experiment.jobs")
    assert train(DEMO, tmp_path / "run", stopped, *package) == 130
    assert train(DEMO, tmp_path / "run", stopped, "--recover", *package) == 0
    assert evaluations(tmp_path / "run") == evaluations(run)
    ours, theirs = (load_file(each / "weights.safetensors") for each in (tmp_path / "run", run))
    assert all(ours[name].equal(theirs[name]) for name in ours.keys() | theirs.keys())


def test_full_softmax_and_bfloat16_train_too(kind: str, run: Path, tmp_path: Path) -> None:
    other = {"model.num_samples": None, "trainer.precision": "bfloat16", "trainer.num_steps": 3}
    assert train(DEMO, tmp_path / "run", {**changes(kind), **other}) == 0
    assert evaluations(tmp_path / "run")[-1]["step"] == 3


def test_training_continues_from_a_run_and_from_its_files(run: Path, kind: str, tmp_path) -> None:
    scores = []
    for name, path in (("run", run), ("files", run / "bilm")):
        start = {
            "init_from": {"path": str(path), "reset_optimizer": name == "files"},
            "trainer.evaluate_at_start": True,
            "trainer.num_steps": 1,
        }
        assert train(DEMO, tmp_path / name, {**changes(kind), **start}) == 0
        scores.append(evaluations(tmp_path / name)[0]["perplexity"])
    best = json.loads((run / "metrics.json").read_text())["best_validation_perplexity"]
    assert scores == pytest.approx([best, best])


def test_the_export_has_the_layers_of_the_run(run: Path, tmp_path: Path) -> None:
    names = ["bilm.json", "weights.safetensors", "softmax.safetensors", "vocabulary.txt"]
    assert [path.name for path in export_bilm(run, tmp_path / "out")] == names
    sentences = [["Rain", "fell", "."], ["Stop"]]
    ours, theirs = (
        elmo_framework.load_bilm(place, device="cpu").embed(sentences)
        for place in (run, tmp_path / "out")
    )
    assert all((one == other).all() for one, other in zip(ours, theirs, strict=True))


def test_a_tagger_reads_the_cached_layers(run: Path, kind: str, tmp_path: Path) -> None:
    assert bilm_files(run).is_generic
    for cache in ("none", "memory"):
        elmo = {"model.embedder.token_embedders.elmo.cache": cache, "trainer.num_epochs": 1}
        assert train(NER, tmp_path / cache, tagging_with(run, **elmo)) == 0
    first, second = (evaluations(tmp_path / cache)[-1] for cache in ("none", "memory"))
    assert first["loss"] == pytest.approx(second["loss"], rel=1e-2)


@pytest.mark.parametrize("flags", [[], ["--state", "document"]])
def test_sentences_are_scored(flags, run: Path, tmp_path: Path, capsys) -> None:
    text = tmp_path / "text.txt"
    text.write_text("Rain fell .\nIt was night .\n\nNobody came .\n")
    assert main(["score", str(run), str(text), *flags, "--device", "cpu"]) == 0
    assert "perplexity" in capsys.readouterr().err


def test_vectors_continue_over_batches(run: Path) -> None:
    """One row of short sentences read with `state: carry` is one long text, boundaries included."""
    sentences = [["Rain", "fell", "."], ["It", "was", "night", "."], ["Nobody", "came"]]
    carried = elmo_framework.load_bilm(run, device="cpu", state="carry")
    first, *rest = (carried.embed([words])[0] for words in sentences)
    fresh = elmo_framework.load_bilm(run, device="cpu")
    torch.testing.assert_close(torch.tensor(first), torch.tensor(fresh.embed(sentences[:1])[0]))
    alone = fresh.embed(sentences[1:])
    assert all(abs(one - other).max() > 1e-4 for one, other in zip(rest, alone, strict=True))
