"""Fixtures of encoders that several folders of tests use."""

from __future__ import annotations

import pytest

from elmo_framework.bilm.bilm import BiLm
from elmo_framework.bilm.files.load import bilm_files, read_bilm
from tests.numpy_bilm import NumpyBiLm

SENTENCES = [["Wörter", "are", "words"], [], ["a"], ["are", "many", "characters-and-more", "!"]]


@pytest.fixture
def numpy_bilm() -> NumpyBiLm:
    return NumpyBiLm.random()


@pytest.fixture
def bilm(numpy_bilm: NumpyBiLm, tmp_path) -> BiLm:
    """The same in torch, in double precision."""
    files = bilm_files(numpy_bilm.save(tmp_path / "numpy"))
    return read_bilm(files, requires_grad=True).double()
