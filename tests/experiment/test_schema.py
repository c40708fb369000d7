"""`elmo schema` and `elmo check` agree, on the shipped configs and on damaged ones."""

from __future__ import annotations

import random
from pathlib import Path

import jsonschema
import pytest

from elmo_framework.config.introspect import schema
from elmo_framework.config.load import Config
from elmo_framework.config.parse import check
from elmo_framework.experiment.experiment import Experiment
from tests.experiment.jobs import ROOT
from tests.fault_injection import damaged

CONFIGS = sorted((ROOT / "experiments").rglob("*.jsonnet"))
NUM_DAMAGED = 50
VALUES_TOGETHER = "FeedForwardOptions: "
"""How a refusal begins that no schema can see: as many widths as layers."""


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    written = schema(Experiment)
    jsonschema.Draft202012Validator.check_schema(written)
    return jsonschema.Draft202012Validator(written)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_a_shipped_config_fits_the_schema(
    path: Path, validator: jsonschema.Draft202012Validator
) -> None:
    assert [error.message for error in validator.iter_errors(Config.load(path).raw)] == []


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_damage_is_judged_alike(path: Path, validator: jsonschema.Draft202012Validator) -> None:
    raw, chance = Config.load(path).raw, random.Random(str(path.relative_to(ROOT)))
    verdicts = set()
    for _ in range(NUM_DAMAGED):
        changed = damaged(raw, chance)
        problems = check(Experiment, changed, source=str(path)).problems
        is_refused = any(not problem.message.startswith(VALUES_TOGETHER) for problem in problems)
        assert validator.is_valid(changed) is not is_refused, changed
        verdicts.add(is_refused)
    assert verdicts == {True, False}
