"""The page on scoring shows what the commands print and write, up to rounding."""

from __future__ import annotations

import csv
import re
from math import inf
from pathlib import Path

import pytest

from tests.docs.page import run_page

PAGE = Path(__file__).parents[2] / "docs/scoring.md"
TABLE = re.compile(r"^```text\n(file .*?)^```$", re.MULTILINE | re.DOTALL)


def cells(line: list[str]) -> list[str | object]:
    """Return the cells that are not empty; numbers with a tolerance for other machines."""
    is_number = re.compile(r"\d+\.\d+").fullmatch
    return [
        pytest.approx(float(cell), abs=1e-3) if is_number(cell) else cell
        for cell in line
        if cell.strip()
    ]


def values(line: list[str]) -> list[str | float]:
    return [float(cell) if re.fullmatch(r"\d+\.\d+", cell) else cell for cell in line if cell]


def test_the_page_shows_the_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("elmo_framework.commands.score._SECONDS_WITHOUT_PROGRESS", inf)
    assert run_page(PAGE) == 3
    shown = [
        [re.split(" {2,}", line.strip()) for line in table.splitlines()]
        for table in TABLE.findall(PAGE.read_text(encoding="utf-8"))
    ]
    for table, name in zip(shown, ("scores.tsv", "regions.tsv"), strict=True):
        with Path(name).open(encoding="utf-8") as file:
            header, *rows = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        first, *lines = table
        assert first == header
        written = rows[-len(lines) :]
        assert [values(row) for row in written] == [cells(line) for line in lines]
