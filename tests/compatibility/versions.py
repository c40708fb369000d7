"""Copies of fixtures that an earlier version has made, and comparison with what it answered."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from safetensors.numpy import load_file

from tests.conftest import ROOT

FIXTURES = ROOT / "tests/fixtures"
TOLERANCE = 1e-4
"""Of products and convolutions that are added up in another order than those of the version.

So it is on another CPU and with another compiler or PyTorch, and everywhere since frozen token
encoders sum rows of a table and LSTMs compute in float32 products of our own.
"""


@dataclass(frozen=True)
class Version:
    """What a version has made, copied to the working folder, and what it answered.

    Attributes:
        expected: the folder of its answers.
    """

    expected: Path

    def json(self, name: str) -> Any:
        """Return one of its answers, a file of JSON or of JSON lines."""
        text = (self.expected / name).read_text(encoding="utf-8")
        return (
            [*map(json.loads, text.splitlines())] if name.endswith(".jsonl") else json.loads(text)
        )

    def check(self, answer: Any, expected: Any) -> None:
        """Compare JSON values, numbers within the tolerance."""
        assert answer == _near(expected)

    def check_predictions(self, answers: list[Any], expected: list[Any]) -> None:
        """Compare predictions; those of a later version may say more."""
        self.check(_known(answers, expected), expected)

    def check_scores(self, scores: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
        """Compare scores; a later version may have more of them."""
        self.check({name: scores.get(name) for name in expected}, expected)

    def check_arrays(
        self, arrays: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray]
    ) -> None:
        """Compare arrays by their names, numbers within the tolerance."""
        assert expected
        assert arrays.keys() == expected.keys()
        for name in expected:
            assert arrays[name].dtype == expected[name].dtype
            np.testing.assert_allclose(arrays[name], expected[name], TOLERANCE, TOLERANCE)

    def check_weights(self, run: Path, name: str) -> None:
        """Compare the weights of a run."""
        self.check_arrays(load_file(run / "weights.safetensors"), load_file(self.expected / name))


def hdf5_arrays(path: Path) -> dict[str, np.ndarray]:
    """Return all datasets of an HDF5 file, at any depth; texts as they are."""
    arrays: dict[str, np.ndarray] = {}

    def add(name: str, entry: h5py.Dataset | h5py.Group) -> None:
        if isinstance(entry, h5py.Dataset) and entry.dtype.kind == "f":
            arrays[name] = entry[...]

    with h5py.File(path) as file:
        file.visititems(add)
    return arrays


def npy_arrays(folder: Path) -> dict[str, np.ndarray]:
    """Return all arrays of a folder."""
    return {path.name: np.load(path) for path in sorted(folder.glob("*.npy"))}


def _known(answer: Any, expected: Any) -> Any:
    """Return an answer without the keys of objects that are not expected."""
    match expected:
        case dict() if isinstance(answer, dict):
            return {key: _known(answer.get(key), value) for key, value in expected.items()}
        case list() if isinstance(answer, list) and len(answer) == len(expected):
            return [*map(_known, answer, expected)]
        case _:
            return answer


def _near(expected: Any) -> Any:
    match expected:
        case float():
            return pytest.approx(expected, rel=TOLERANCE, abs=1e-6)
        case dict():
            return {key: _near(value) for key, value in expected.items()}
        case list():
            return [_near(value) for value in expected]
        case _:
            return expected
