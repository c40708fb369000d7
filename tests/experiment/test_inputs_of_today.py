"""Pretraining, resuming, export, scores and frozen use with pieces and with bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

import elmo_framework
from elmo_framework.commands.main import main
from elmo_framework.corpus.job import PreparationJob
from elmo_framework.corpus.prepare import prepare
from elmo_framework.experiment.load_run import export_bilm
from tests.experiment.jobs import DATA, PRETRAINING, evaluations, tagging_with, train

PACKAGE = ("--include-package", "tests.experiment.jobs")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("corpus") / "corpus"
    prepare(PreparationJob([DATA / "lm_train.txt"], output, held_out=20, num_pieces=300))
    return output


def changes(corpus: Path, kind: str) -> dict[str, Any]:
    own = {key: value for key, value in PRETRAINING.items() if ".token_encoder." not in key}
    if kind == "pieces":
        encoder = {"pieces_file": str(corpus / "pieces.json"), "embedding_dim": 8}
    else:
        encoder = {"embedding_dim": 4, "projection_dim": 8}
    return {
        **own,
        "train_data_path": str(corpus / "training"),
        "validation_data_path": str(corpus / "held_out"),
        "model.token_encoder": {"type": kind, **encoder},
        "model.max_vocabulary_size": None,
        "trainer.learning_rate_scheduler": "constant",
        "trainer.num_epochs": 1,
        "trainer.num_steps": 6,
        "trainer.evaluate_every": {"steps": 3},
    }


def shipped(kind: str) -> str:
    return f"experiments/pretrain/today/{kind}.jsonnet"


@pytest.fixture(scope="module", params=["pieces", "bytes"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def run(kind: str, corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp(kind) / "run"
    assert train(shipped(kind), directory, changes(corpus, kind)) == 0
    return directory


def test_a_stopped_training_resumes_bit_for_bit(kind, run, corpus, tmp_path: Path) -> None:
    stop = {"type": "signal_once", "step": 4, "name": "SIGINT"}
    stopped = {**changes(corpus, kind), "trainer.callbacks": ["tensorboard", stop]}
    assert train(shipped(kind), tmp_path / "run", stopped, *PACKAGE) == 130
    assert train(shipped(kind), tmp_path / "run", stopped, "--recover", *PACKAGE) == 0
    assert evaluations(tmp_path / "run") == evaluations(run)
    ours, theirs = (load_file(each / "weights.safetensors") for each in (tmp_path / "run", run))
    assert all(ours[name].equal(theirs[name]) for name in ours.keys() | theirs.keys())


def test_an_export_embeds_and_scores_like_its_run(run, corpus, tmp_path, capsys) -> None:
    folder, text = tmp_path / "out", tmp_path / "text.txt"
    export_bilm(run, folder)
    text.write_text("Rain fell .\n\nNobody came .\n")
    ours, theirs = (
        elmo_framework.load_bilm(place, device="cpu").embed([["Rain", "fell", "."], ["Stop"]])
        for place in (run, folder)
    )
    assert all((one == other).all() for one, other in zip(ours, theirs, strict=True))
    for command in ("score", "evaluate"):
        assert main([command, str(folder), str(text), "--device", "cpu"]) == 0
    assert "perplexity" in capsys.readouterr().out


def test_a_tagger_reads_the_cached_layers(run: Path, tmp_path: Path) -> None:
    config, losses = "experiments/ner/elmo.jsonnet", []
    for cache in ("none", "memory"):
        elmo = {"model.embedder.token_embedders.elmo.cache": cache, "trainer.num_epochs": 1}
        assert train(config, tmp_path / cache, tagging_with(run, **elmo)) == 0
        losses.append(evaluations(tmp_path / cache)[-1]["loss"])
    assert losses[0] == pytest.approx(losses[1], rel=1e-2)


def test_full_softmax_and_hidden_words_train_too(kind, corpus: Path, tmp_path: Path) -> None:
    layers = {"type": "bidirectional_transformer", "num_heads": 2, "head_dim": 4}
    other = {
        **changes(corpus, kind),
        "model.context_layers": {**layers, "feedforward_dim": 8, "num_layers": 1},
        "model.num_samples": None,
        "trainer.num_steps": 2,
        "trainer.evaluate_every": {"steps": 2},
    }
    assert train("experiments/pretrain/today/masked_lm.jsonnet", tmp_path / "run", other) == 0
    bilm = elmo_framework.load_bilm(tmp_path / "run", device="cpu")
    assert bilm.embed([["Rain", "fell"]])[0].shape == (2, 2, 8)


@pytest.mark.parametrize("kind", ["pieces"], indirect=True)
def test_other_pieces_are_refused(run: Path, corpus: Path, kind: str, tmp_path, capsys) -> None:
    other = tmp_path / "pieces.json"
    other.write_text((corpus / "pieces.json").read_text().replace('"!": 0', '"!": 1', 1))
    start = {"init_from": {"path": str(run / "bilm"), "reset_optimizer": True}}
    changed = {**changes(corpus, kind), **start, "trainer.num_steps": 1}
    assert train(shipped(kind), tmp_path / "same", changed) == 0
    changed["model.token_encoder"] = {**changed["model.token_encoder"], "pieces_file": str(other)}
    assert train(shipped(kind), tmp_path / "other", changed) == 2
    assert "token_encoder.pieces_file is 'a file with SHA-256" in capsys.readouterr().err
