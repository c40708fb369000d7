from pathlib import Path

import pytest

from tests.numpy_bilm import NumpyBiLm


@pytest.fixture
def numpy_bilm() -> NumpyBiLm:
    return NumpyBiLm.random(max_characters_per_token=50, projection_dim=4)


@pytest.fixture
def folder(numpy_bilm: NumpyBiLm, tmp_path: Path) -> Path:
    return numpy_bilm.save(tmp_path / "bilm")
