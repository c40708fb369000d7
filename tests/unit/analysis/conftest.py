"""A biLM of a few hundred weights, and a corpus of a few lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.numpy_bilm import NumpyBiLm

LINES = (
    "the bank of the river",
    "",
    "a bank lends money",
    "no such word here",
    "bank to bank",
    "a bank lends money",
    "he sat on the bank",
)


@pytest.fixture(scope="session")
def numpy_bilm() -> NumpyBiLm:
    return NumpyBiLm.random()


@pytest.fixture(scope="session")
def bilm(numpy_bilm: NumpyBiLm, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return numpy_bilm.save(tmp_path_factory.mktemp("bilm"))


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.txt"
    path.write_text("".join(f"{line}\n" for line in LINES))
    return path
