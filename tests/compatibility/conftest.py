from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compatibility.versions import FIXTURES, Version


@pytest.fixture
def first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Version:
    """What the first version has made, as the working folder of a test."""
    return _version("first_version", tmp_path / "first", monkeypatch)


@pytest.fixture
def before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Version:
    """What the version before the rebuild has made, with the data and the biLM of the first."""
    folder = tmp_path / "before"
    for name, copy in (("data", "data"), ("runs/bilm/bilm", "bilm")):
        shutil.copytree(FIXTURES / "first_version" / name, folder / copy)
    return _version("before_rebuild", folder, monkeypatch)


@pytest.fixture
def layers() -> Iterator[Path]:
    """The folder of cached layers; what a test adds to it is removed afterwards."""
    folder = Path(os.environ["ELMO_CACHE_ROOT"]) / "layers"
    folder.mkdir(parents=True, exist_ok=True)
    others = {*folder.iterdir()}
    yield folder
    for path in {*folder.iterdir()} - others:
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _version(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Version:
    ignored = shutil.ignore_patterns("make.py", "expected", "README.md")
    shutil.copytree(FIXTURES / name, folder, ignore=ignored, dirs_exist_ok=True)
    monkeypatch.chdir(folder)
    return Version(FIXTURES / name / "expected")
