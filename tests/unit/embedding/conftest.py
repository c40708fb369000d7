"""A biLM of a few hundred weights, and the job that every test varies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from elmo_framework.embedding.job import EmbeddingJob
from tests.numpy_bilm import NumpyBiLm

TEXT = ["Words are words .", "", "a  b", "are many more", "Words are words .", "a b", "one"]


@pytest.fixture
def numpy_bilm() -> NumpyBiLm:
    return NumpyBiLm.random()


@pytest.fixture
def job(numpy_bilm: NumpyBiLm, tmp_path: Path) -> Callable[..., EmbeddingJob]:
    """Make a job that embeds TEXT unless told otherwise."""
    numpy_bilm.save(tmp_path / "bilm")
    (tmp_path / "text.txt").write_text("\n".join(TEXT) + "\n")
    held = EmbeddingJob(
        tmp_path / "bilm", [tmp_path / "text.txt"], tmp_path / "out.hdf5", device="cpu"
    )

    def make(**changes: Any) -> EmbeddingJob:
        return replace(held, **changes)

    return make
