"""Runs whose biLM is frozen, with its layers stored and without."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from elmo_framework import load
from elmo_framework.commands.main import main
from elmo_framework.layers.bilm_source import FrozenBiLm
from elmo_framework.layers.cache import cached_layers, shard_files
from tests.experiment.jobs import DATA, arguments, evaluations, run_forked, tagging_with, train
from tests.numpy_bilm import NumpyBiLm

NER = "experiments/ner/elmo.jsonnet"
ELMO = "model.embedder.token_embedders.elmo"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ELMO_CACHE_ROOT", str(tmp_path / "cache"))
    return tmp_path / "cache" / "layers"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return NumpyBiLm.random().save(tmp_path / "bilm")


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Its length is how often a frozen biLM was run."""
    calls, compute = [], FrozenBiLm.compute

    def counted(self: FrozenBiLm, *arguments):
        calls.append(1)
        return compute(self, *arguments)

    monkeypatch.setattr(FrozenBiLm, "compute", counted)
    return calls


def metrics_of(run: Path, folder: Path, **keys) -> list[dict[str, float]]:
    changes = {f"{ELMO}.{key}": value for key, value in keys.items()}
    assert train(NER, run, tagging_with(folder, **changes)) == 0
    return evaluations(run)


def test_a_damaged_layer_cache_does_not_affect_training(
    folder: Path, tmp_path: Path, cache: Path, passes, capsys: pytest.CaptureFixture[str]
) -> None:
    first = metrics_of(tmp_path / "first", folder)
    (vectors,) = cache.glob("*/0*/vectors.bin")
    content = bytearray(vectors.read_bytes())
    content[::64] = bytes(255 - byte for byte in content[::64])
    vectors.write_bytes(content)
    passes.clear()
    capsys.readouterr()
    assert metrics_of(tmp_path / "second", folder) == first
    assert passes
    assert f"{vectors.parent}: damaged: block 0 of vectors.bin has changed" in (
        capsys.readouterr().err
    )


def test_a_second_run_makes_no_call_of_the_bilm(folder: Path, tmp_path: Path, passes) -> None:
    first = metrics_of(tmp_path / "first", folder)
    assert passes
    passes.clear()
    assert metrics_of(tmp_path / "second", folder) == first
    run = load(tmp_path / "second")
    best = json.loads((tmp_path / "second/metrics.json").read_text())["best_validation_loss"]
    assert run.evaluate(DATA / "valid.txt")["loss"] == pytest.approx(best, rel=1e-5)
    assert passes == []


def test_a_run_learns_the_same_with_and_without_a_layer_cache(folder: Path, tmp_path: Path) -> None:
    plain = metrics_of(tmp_path / "plain", folder, cache="none")
    for keys in ({"cache": "memory"}, {"cache": "disk"}):
        name = keys["cache"]
        cached = metrics_of(tmp_path / name, folder, **keys, cache_dtype="float32")
        for found, expected in zip(cached, plain, strict=True):
            assert found == pytest.approx(expected, rel=1e-3, abs=1e-4)


def killed_at_the_third_shard(words: list[str]) -> int:
    """Run a command in a process that is killed there."""
    save, shards = np.save, []

    def saved(file: Any, array: np.ndarray) -> None:
        save(file, array)
        shards.extend([file] if isinstance(file, os.PathLike) else [])  # checksums, one a shard
        if len(shards) == 3:
            os.kill(os.getpid(), signal.SIGKILL)

    with patch.object(shard_files.np, "save", saved):
        return main(words)


def test_resume_completes_a_partial_layer_cache(
    folder: Path, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cached_layers, "_SHARD_BYTES", 4000)
    little = tagging_with(folder, **{"trainer.num_epochs": 1})
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert train(NER, whole, little) == 0
    expected = contents(cache)
    shutil.rmtree(cache)

    words = arguments(NER, killed, little)
    assert run_forked(lambda: killed_at_the_third_shard(words)) == -signal.SIGKILL
    left = contents(cache)
    assert 0 < len(left) < len(expected)
    assert train(NER, killed, little, "--recover") == 0
    assert contents(cache) == expected
    assert left.items() <= expected.items()
    assert weights(killed) == weights(whole)


def weights(run: Path) -> bytes:
    return (run / "weights.safetensors").read_bytes()


def contents(folder: Path) -> dict[str, bytes]:
    """All files that are not hidden, as what is being written is."""
    files = [path for path in folder.rglob("*") if path.is_file() and "/." not in str(path)]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_prediction_with_a_loaded_run_builds_no_layer_cache(folder, tmp_path, cache: Path) -> None:
    metrics_of(tmp_path / "run", folder, cache="memory")
    load(tmp_path / "run").predict([{"tokens": ["a", "sentence"]}])
    assert not cache.exists()
