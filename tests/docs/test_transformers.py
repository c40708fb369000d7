"""The commands of the page on transformers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.page import run_page

DOCS = Path(__file__).parents[2] / "docs"


def test_the_tiny_model_of_the_page_is_embedded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("transformers")
    (tmp_path / "experiments").symlink_to(DOCS.parent / "experiments")
    monkeypatch.chdir(tmp_path)
    assert run_page(DOCS / "transformers.md", section="A folder to try") == 2
