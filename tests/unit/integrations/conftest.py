from pathlib import Path

import pytest

from tests.numpy_bilm import NumpyBiLm


@pytest.fixture(scope="module")
def bilm(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a biLM of a few hundred weights: 3 layers of dimension 8."""
    numpy_bilm = NumpyBiLm.random(max_characters_per_token=50, projection_dim=4)
    return str(numpy_bilm.save(tmp_path_factory.mktemp("bilm")))


@pytest.fixture
def other(tmp_path: Path) -> Path:
    return NumpyBiLm.random(max_characters_per_token=40, projection_dim=4).save(tmp_path / "other")
