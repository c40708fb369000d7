"""One small biLM and one small tagger on it, for all tests that only read them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.experiment.jobs import pretrain, tagging_with, train


@pytest.fixture(scope="session")
def bilm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of a pretrained biLM."""
    return pretrain(tmp_path_factory.mktemp("shared") / "bilm")


@pytest.fixture(scope="session")
def tagger(bilm: Path) -> Path:
    """The run of a tagger that reads the frozen layers of the biLM."""
    directory = bilm.parent / "tagger"
    assert train("experiments/ner/elmo.jsonnet", directory, tagging_with(bilm)) == 0
    return directory
