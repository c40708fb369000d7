"""`load_archive`."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from elmo_framework import RunError
from elmo_framework.model.weights import save_tensors
from elmo_framework.models import load_archive
from tests.conftest import ROOT

ARCHIVE = ROOT / "tests/fixtures/allennlp/bcn.tar.gz"


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELMO_CACHE_ROOT", str(tmp_path))


def test_an_archive_has_the_attributes_of_allennlp() -> None:
    archive = load_archive(ARCHIVE, cuda_device=-1)
    assert archive.model is archive.run.model
    assert not archive.model.training
    assert archive.config["model"]["type"] == "bcn"
    assert archive.dataset_reader is archive.run.experiment.dataset_reader
    assert archive.validation_dataset_reader is archive.run.experiment.validation_dataset_reader
    assert archive.metrics == {}


def test_another_file_of_weights_is_loaded(tmp_path: Path) -> None:
    best = load_archive(ARCHIVE).run
    assert best.run is not None
    path, weights = tmp_path / "model.safetensors", best.model.state_dict()
    name = next(name for name in weights if name.endswith("bias"))
    save_tensors({**weights, name: weights[name] + 1}, path)
    other = load_archive(best.run.path, weights_file=path).model.state_dict()
    assert torch.equal(other[name], weights[name] + 1)


def test_overrides_are_refused() -> None:
    with pytest.raises(RunError, match="overrides"):
        load_archive(ARCHIVE, overrides='{"model": {}}')
    with pytest.raises(RunError, match="cuda_device is 3"):
        load_archive(ARCHIVE, 3)
