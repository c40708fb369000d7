"""A package of two modules whose stub makes one name of each public."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

INIT = """\
from elmo_framework.lazy_import import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
"""
STUB = """\
from .left import Left as Left
from .right.inner import (
    Right as Right,
)

__version__: str
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    files = {
        "__init__.py": INIT,
        "__init__.pyi": STUB,
        "left.py": "class Left: ...\n",
        "right/inner.py": "class Right: ...\n",
    }
    for name, text in files.items():
        path = tmp_path / "two_modules" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("two_modules")
    for name in [name for name in sys.modules if name.split(".")[0] == "two_modules"]:
        del sys.modules[name]


def test_the_stub_lists_the_public_names(package: ModuleType) -> None:
    assert package.__all__ == dir(package) == ["Left", "Right"]


def test_a_module_is_imported_when_its_name_is_first_used(package: ModuleType) -> None:
    assert "two_modules.left" not in sys.modules
    assert package.Left is sys.modules["two_modules.left"].Left
    assert vars(package)["Left"] is package.Left
    assert "two_modules.right.inner" not in sys.modules
    assert package.Right.__name__ == "Right"


def test_other_names_are_refused(package: ModuleType) -> None:
    with pytest.raises(AttributeError, match="module 'two_modules' has no attribute 'Middle'"):
        _ = package.Middle
