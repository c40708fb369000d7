"""The page on Python prints what it shows, and the notebook is what its cells do."""

from __future__ import annotations

import base64
import io
import json
import re
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest
from matplotlib import pyplot as plt

import elmo_framework.integrations.spacy_factories  # noqa: F401 -- where it is not installed anew
from tests.docs.page import run_page

DOCS = Path(__file__).parents[2] / "docs"
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
TOUR = DOCS / "tour.ipynb"


def test_the_page_prints_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "experiments").symlink_to(DOCS.parent / "experiments")
    monkeypatch.chdir(tmp_path)
    assert run_page(DOCS / "python.md") == 3


def outputs(code: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    """Run a cell and return its outputs in the format of notebooks: text, then pictures.

    Jupyter's packages would need a process of their own for this, and half a minute.
    """
    with redirect_stdout(io.StringIO()) as printed:
        exec(compile(code, TOUR.name, "exec"), names)
    found: list[dict[str, Any]] = []
    if text := printed.getvalue():
        lines = text.splitlines(keepends=True)
        found.append({"name": "stdout", "output_type": "stream", "text": lines})
    for number in plt.get_fignums():
        content = io.BytesIO()
        plt.figure(number).savefig(content, dpi=60, metadata={"Software": None})
        plt.close(number)
        picture = {"image/png": base64.b64encode(content.getvalue()).decode()}
        found.append({"data": picture, "metadata": {}, "output_type": "display_data"})
    return found


def text_and_numbers(found: list[dict[str, Any]]) -> tuple[list[str], list[float]]:
    """Return text without its numbers, kinds of pictures, whose bytes vary, and the numbers."""
    text = [line for each in found for line in each.get("text") or [*each["data"]]]
    return [NUMBER.sub("#", line) for line in text], [
        float(number) for line in text for number in NUMBER.findall(line)
    ]


def test_the_notebook_has_the_outputs_of_its_cells(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`pytest tests/docs/test_python.py --write-golden` writes them again."""
    monkeypatch.chdir(DOCS)
    mpl.use("agg")
    notebook, names = json.loads(TOUR.read_text()), dict[str, Any]()
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, cell in enumerate(cells, start=1):
        found = outputs("".join(cell["source"]), names)
        if request.config.getoption("--write-golden"):
            cell["outputs"], cell["execution_count"] = found, number
        words, numbers = text_and_numbers(found)
        expected_words, expected_numbers = text_and_numbers(cell["outputs"])
        assert words == expected_words
        # A training has slightly other results on other processors.
        assert numbers == pytest.approx(expected_numbers, rel=0.1, abs=0.1)
    if request.config.getoption("--write-golden"):
        TOUR.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")


def test_the_notebook_has_no_path_of_a_machine() -> None:
    text = TOUR.read_text()
    cells = json.loads(text)["cells"]
    assert any(
        "image/png" in output.get("data", {}) for c in cells for output in c.get("outputs", [])
    )
    text = re.sub(r'"image/png": "[^"]*"', "", text)
    assert not re.search(r"/(home|root|work|tmp|usr|Users)/|[A-Z]:\\\\", text)
