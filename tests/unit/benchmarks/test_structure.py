"""What is counted, on a package of a few lines, and how two measurements are compared."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
import structure

SETUP = """\
[importlinter:contract:layers]
layers =
    top
    left | right
    low
"""
LOW = '''"""What is below."""

from typing import Protocol, runtime_checkable

# Why it is so.
LIMIT = 1
"""The limit stands here."""


@runtime_checkable
class Walks(Protocol):
    def walk(self) -> None: ...


def ask(given):
    """Ask."""
    held = getattr(given, "x", None)

    def inner():
        found = held
        return found

    if isinstance(given, int | Walks):
        return inner()
'''


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkout of a small package."""
    files = {
        "setup.cfg": SETUP,
        "elmo_framework/__init__.py": "",
        "elmo_framework/low.py": LOW,
        "elmo_framework/left.py": "from elmo_framework import low\nclass Walks: ...\n",
        "elmo_framework/right/__init__.py": "",
        "elmo_framework/right/__init__.pyi": "from .one import x as x\n",
        "elmo_framework/right/one.py": "from . import two\n",
        "elmo_framework/right/two.py": "def go():\n    from .one import x\n    return x\n",
        "README.md": f"{'x' * 101}\n| {'x' * 101} |\n```\n{'x' * 101}\n```\nIt goes\non.\n",
        "docs/page.md": "There is no room.\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_sizes_leave_out_blanks_comments_and_docstrings(root: Path) -> None:
    numbers = structure.measure(root).numbers
    assert numbers["files"] == 6
    assert numbers["lines"] == 24 + 2 + 1 + 3 + 1
    assert numbers["lines of stubs"] == 1
    assert numbers["lines of code"] == 12 + 2 + 1 + 3
    assert numbers["longest file"] == 24


def test_classes_and_functions_are_counted(root: Path) -> None:
    measured = structure.measure(root)
    assert measured.numbers["class names"] == 1
    assert measured.details["class names defined twice"] == {
        "Walks": ["elmo_framework.left", "elmo_framework.low"]
    }
    assert measured.numbers["functions"] == 4
    assert measured.numbers["median function (body)"] == 2
    assert measured.numbers["longest function (body)"] == 8
    assert measured.numbers["longest function (body and signature as a line)"] == 9


def test_indirection_is_counted(root: Path) -> None:
    measured = structure.measure(root)
    assert measured.numbers["runtime-checkable protocols"] == 1
    assert measured.numbers["getattr calls"] == 1
    (site,) = measured.details["isinstance against such a protocol"]
    assert site.endswith("isinstance(given, int | Walks)")


def test_circles_of_imports_are_found(root: Path) -> None:
    measured = structure.measure(root)
    circle = ["elmo_framework.right.one", "elmo_framework.right.two"]
    assert measured.numbers["import circles of modules"] == 1
    assert measured.numbers["import circles of sibling packages"] == 1
    assert measured.details["circles"] == [circle, circle]


@pytest.mark.parametrize(
    ("module", "imported", "is_upward"),
    [("top", "low", False), ("low", "top", True), ("left", "right", True), ("low", "low", False)],
)
def test_an_import_of_a_higher_layer_is_an_arrow_up(
    root: Path, module: str, imported: str, is_upward: bool
) -> None:
    layers = structure.read_layers(root / "setup.cfg")
    graph = {f"elmo_framework.{module}": {f"elmo_framework.{imported}.inner"}}
    assert bool([*structure.arrows_up(graph, layers)]) == is_upward


def test_language_is_counted(root: Path) -> None:
    measured = structure.measure(root)
    numbers = measured.numbers
    assert measured.details["clauses"] == ["elmo_framework.low"]
    assert {
        name: numbers[f"  {name}"] for name in structure.VAGUE_NAMES if numbers[f"  {name}"]
    } == {
        "held": 1,
        "found": 1,
        "given": 1,
    }
    assert numbers["comment lines"] == 1
    assert measured.details["long prose"] == ["README.md:1"]
    assert numbers["  stands"] == 1
    assert numbers["phrases in the package"] == 1
    assert numbers["  goes on (Markdown)"] == 1
    assert numbers["  is no (Markdown)"] == numbers["  room (Markdown)"] == 1
    assert numbers["phrases in Markdown"] == 3


def test_a_body_is_measured_without_its_docstring() -> None:
    (function,) = ast.parse('def f(\n    a,\n):\n    """Add."""\n    b = a\n\n    return b\n').body
    assert isinstance(function, ast.FunctionDef)
    assert structure.body_length(function) == 3


def test_a_measurement_is_compared_with_an_earlier_one(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = root / "before.json"
    assert structure.main(["--root", str(root), "--json", str(before)]) == 0
    content = json.loads(before.read_text())
    content["numbers"].update({"lines": 62, "gone": 5})
    before.write_text(json.dumps(content))
    capsys.readouterr()

    assert structure.main(["--root", str(root), "--compare", str(before)]) == 0

    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert rows[0] == ["before", "after", "change"]
    assert ["lines", "62", "31", "-50.0%"] in rows
    assert ["gone", "5", "-"] in rows


def test_the_package_itself_has_no_circles_and_no_arrows_up() -> None:
    root = Path(structure.__file__).parents[1]
    numbers = structure.imports(structure.read_package(root), root / "setup.cfg").numbers
    assert numbers.pop("imports inside the package") > 1000
    assert set(numbers.values()) == {0}
