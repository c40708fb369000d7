"""The pages for users of AllenNLP do what they say."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.page import run_page
from tests.plugin_scope import without_plugins

ROOT = Path(__file__).parents[2]


def test_the_pages_print_what_they_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "experiments").symlink_to(ROOT / "experiments")
    (tmp_path / "bilm").symlink_to(ROOT / "elmo_framework/bilm/mini")
    fixtures = ROOT / "tests/fixtures"
    (tmp_path / "model.tar.gz").symlink_to(fixtures / "allennlp/crf_tagger.tar.gz")
    (tmp_path / "test.txt").symlink_to(fixtures / "first_version/data/ner.txt")
    with without_plugins("ported"):
        assert run_page(ROOT / "docs/from_allennlp.md") == 14
        assert run_page(ROOT / "docs/allennlp_details.md") == 1
