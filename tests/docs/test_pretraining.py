"""The page of pretraining: what replaces the scripts of bilm-tf."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.docs.page import run_page

ROOT = Path(__file__).parents[2]
THEIRS = ROOT / "tests/fixtures/bilm_tf"


def test_the_scripts_of_bilm_tf_have_a_recipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "experiments").symlink_to(ROOT / "experiments")
    options = json.loads((THEIRS / "options.json").read_text())
    Path("options.json").write_text(json.dumps({**options, "n_epochs": 1}))
    Path("vocab.txt").symlink_to(THEIRS / "vocab.txt")
    for name in ("training/one.txt", "training/two.txt", "heldout/news.txt"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text("the dog w3 barks w7 .\n" * 20)
    assert run_page(ROOT / "docs/pretraining.md", section="The scripts of bilm-tf") == 2
