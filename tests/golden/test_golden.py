"""Every shipped config in its filled form, so that a change of a default is seen in review."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from elmo_framework.config.load import Config
from elmo_framework.config.parse import parse
from elmo_framework.config.resolve import filled
from elmo_framework.experiment.experiment import Experiment
from elmo_framework.study.study import Study, is_study

ROOT = Path(__file__).parents[2]
STUDIES = ROOT / "experiments/paper"
CONFIGS = sorted(
    path for path in (ROOT / "experiments").rglob("*.jsonnet") if STUDIES not in path.parents
)


def filled_form(path: Path) -> dict[str, Any]:
    return filled_again(Config.load(path).raw)


def filled_again(raw: dict[str, Any]) -> dict[str, Any]:
    return filled(parse(Study if is_study(raw) else Experiment, raw, source="config"))


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_filled_form_is_the_one_on_record(path: Path, request: pytest.FixtureRequest) -> None:
    name = "-".join(path.relative_to(ROOT / "experiments").with_suffix(".json").parts)
    golden = Path(__file__).parent / name
    written = json.dumps(filled_form(path), indent=2, ensure_ascii=False) + "\n"
    if request.config.getoption("--write-golden"):
        golden.write_text(written)
    assert written == golden.read_text(), "run `make golden` and look at the difference"


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_filled_form_means_the_same(path: Path) -> None:
    once = filled_form(path)
    assert filled_again(once) == once


def test_nothing_is_on_record_for_configs_that_are_gone() -> None:
    names = {
        "-".join(path.relative_to(ROOT / "experiments").with_suffix(".json").parts)
        for path in CONFIGS
    }
    assert {path.name for path in Path(__file__).parent.glob("*.json")} == names
