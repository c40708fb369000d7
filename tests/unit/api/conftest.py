from pathlib import Path

import pytest

from tests.numpy_bilm import NumpyBiLm, NumpySoftmax


@pytest.fixture
def numpy_bilm() -> NumpyBiLm:
    return NumpyBiLm.random(max_characters_per_token=50, projection_dim=4)


@pytest.fixture
def folder(numpy_bilm: NumpyBiLm, tmp_path: Path) -> Path:
    return numpy_bilm.save(tmp_path / "bilm")


@pytest.fixture
def numpy_softmax(numpy_bilm: NumpyBiLm) -> NumpySoftmax:
    return NumpySoftmax.random(numpy_bilm, ["are", "words", "a", "!"])


@pytest.fixture
def scorer(folder: Path, numpy_softmax: NumpySoftmax) -> Path:
    """A biLM with a softmax, of which "many" and "Wörter" are unknown words."""
    return numpy_softmax.save(folder)
