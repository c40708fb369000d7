"""The page shows what `elmo new`, `train`, `evaluate` and `predict` print for a small table."""

import json
import shutil
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.docs.page import run_page

PAGE = ROOT / "docs/first_model.md"


@pytest.mark.slow
def test_the_page_prints_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "experiments/demo/messages.csv", tmp_path)

    assert run_page(PAGE) == 5

    assert Path("messages.html").is_file()
    lines = Path("topics.jsonl").read_text().splitlines()
    predictions = [json.loads(line) for line in lines]
    assert [each["number"] for each in predictions] == ["2001", "2002"]
    assert all(each["label"] in each["probabilities"] for each in predictions)
    metrics = json.loads(Path("runs/messages/metrics.json").read_text())
    assert metrics["best_validation_accuracy"] > 0.5  # of three labels
