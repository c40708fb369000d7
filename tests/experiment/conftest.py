"""One small biLM and one small tagger on it, for all tests that only read them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.experiment.jobs import pretrain, tagging_with, train

NER = "experiments/ner/elmo.jsonnet"


@pytest.fixture(scope="session")
def bilm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of a pretrained biLM."""
    return pretrain(tmp_path_factory.mktemp("shared") / "bilm")


@pytest.fixture(scope="session")
def tagger(bilm: Path) -> Path:
    """The run of a tagger that reads the frozen layers of the biLM."""
    directory = bilm.parent / "tagger"
    assert train(NER, directory, tagging_with(bilm)) == 0
    return directory


@pytest.fixture(scope="session")
def tuned(bilm: Path) -> Path:
    """The run of a tagger that has trained the biLM with the task."""
    directory = bilm.parent / "tuned"
    changes = {"model.embedder.token_embedders.elmo.requires_grad": True, "trainer.num_epochs": 1}
    assert train(NER, directory, tagging_with(bilm, **changes)) == 0
    return directory
