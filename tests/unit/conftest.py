"""Fixtures of encoders that several folders of tests use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

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


@pytest.fixture(scope="session")
def transformer_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return the folder of a tiny transformer of a kind, written once."""
    # Slow to import, and for these tests alone.
    from tests.tiny_transformers import save_transformer

    root, written = tmp_path_factory.mktemp("transformers"), dict[str, Path]()

    def folder(kind: str) -> Path:
        if kind not in written:
            written[kind] = save_transformer(root / kind, kind)
        return written[kind]

    return folder
