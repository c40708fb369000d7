"""The page on studies shows what the commands print, and its study can be trained."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from elmo_framework.commands.main import main
from elmo_framework.study.record import read_records
from tests.docs.page import run_page
from tests.experiment import studies  # noqa: F401  (registers the executor `inline`)

ROOT = Path(__file__).parents[2]
PAGE, STUDY = ROOT / "docs/study.md", ROOT / "experiments/demo/study.jsonnet"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "experiments").symlink_to(ROOT / "experiments")


def test_commands_of_the_page_print_what_it_shows() -> None:
    assert run_page(PAGE) == 2
    shown = re.search(r"```jsonnet\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert shown is not None
    assert STUDY.read_text().endswith(shown[1])


def test_study_of_the_page_is_trained_and_scored_on_test_data() -> None:
    changes = {
        "seeds": "[1]",
        "executor": "inline",
        "configs.ner.config.trainer.num_epochs": "1",
        "configs.ner.config.dataset_reader.max_instances": "20",
    }
    overrides = [word for key in changes for word in ("-o", f"{key}={changes[key]}")]
    words = ["study", "experiments/demo/study.jsonnet", "-s", "study", *overrides]
    assert main([*words, "--final"]) == 0
    records = read_records(Path("study/results"))
    assert [record.name for record in records] == ["ner/mini/seed-1", "ner/none/seed-1"]
    assert all(record.test is not None for record in records)
