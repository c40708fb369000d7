"""`load_archive`."""

from __future__ import annotations

from pathlib import Path

import pytest

from elmo_framework import RunError
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


def test_other_weights_and_overrides_are_refused() -> None:
    with pytest.raises(RunError, match="weights_file: a model is loaded with its best weights"):
        load_archive(ARCHIVE, weights_file="model_state_epoch_1.th")
    with pytest.raises(RunError, match="overrides"):
        load_archive(ARCHIVE, overrides='{"model": {}}')
    with pytest.raises(RunError, match="cuda_device is 3"):
        load_archive(ARCHIVE, 3)
