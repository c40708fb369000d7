"""The page on preparing text does what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.page import run_page

ROOT = Path(__file__).parents[2]


def test_the_page_prints_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_page(ROOT / "docs/preparing_text.md") == 4
