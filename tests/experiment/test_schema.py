"""`elmo schema` and `elmo check` agree, on the shipped configs and on damaged ones."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from elmo_framework.config.introspect import schema
from elmo_framework.config.load import Config
from elmo_framework.config.parse import check
from elmo_framework.experiment.experiment import Experiment
from elmo_framework.study.study import Study, is_study
from tests.experiment.jobs import ROOT
from tests.fault_injection import damaged

CONFIGS = sorted((ROOT / "experiments").rglob("*.jsonnet"))
NUM_DAMAGED = 50
VALUES_TOGETHER = "FeedForwardOptions: "
"""How a refusal begins that no schema can see: as many widths as layers."""


@cache
def validator(family: type[Experiment | Study]) -> jsonschema.Draft202012Validator:
    written = schema(family)
    jsonschema.Draft202012Validator.check_schema(written)
    return jsonschema.Draft202012Validator(written)


def load(path: Path) -> tuple[dict[str, Any], type[Experiment | Study]]:
    raw = Config.load(path).raw
    return raw, Study if is_study(raw) else Experiment


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_a_shipped_config_fits_the_schema(path: Path) -> None:
    raw, family = load(path)
    assert [error.message for error in validator(family).iter_errors(raw)] == []


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_damage_is_judged_alike(path: Path) -> None:
    (raw, family), chance = load(path), random.Random(str(path.relative_to(ROOT)))
    verdicts = set()
    for _ in range(NUM_DAMAGED):
        changed = damaged(raw, chance)
        problems = check(family, changed, source=str(path)).problems
        is_refused = any(not problem.message.startswith(VALUES_TOGETHER) for problem in problems)
        assert validator(family).is_valid(changed) is not is_refused, changed
        verdicts.add(is_refused)
    # Most of a study is in its configs, which are checked later: damage there is accepted.
    assert family is Study or verdicts == {True, False}
