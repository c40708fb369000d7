"""`elmo schema` and `elmo check` agree, on the shipped configs and on damaged ones."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from elmo_framework.common.build import check
from elmo_framework.common.config import Config
from elmo_framework.common.schema import schema
from elmo_framework.experiment.experiment import Experiment
from tests.experiment.jobs import ROOT

CONFIGS = sorted((ROOT / "experiments").rglob("*.jsonnet"))
VALUES = [None, True, -1, 0, 1.5, 3.0, 10**9, "", "nonsense", [], {}, ["a"], {"type": "lstm"}]
NUM_DAMAGED = 150
VALUES_TOGETHER = "FeedForwardOptions: "
"""How a refusal begins that no schema can see: as many widths as layers."""


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    written = schema(Experiment)
    jsonschema.Draft202012Validator.check_schema(written)
    return jsonschema.Draft202012Validator(written)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container of a config with each of its keys."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, held in items:
        yield value, key
        if isinstance(held, dict | list):
            yield from places(held)


def damaged(raw: dict[str, Any], generator: random.Random) -> dict[str, Any]:
    """The config with one thing changed at random."""
    changed = copy.deepcopy(raw)
    container, key = generator.choice(list(places(changed)))
    kind = generator.choice(["remove", "rename", "replace", "wrap"])
    if kind == "replace":
        container[key] = copy.deepcopy(generator.choice(VALUES))
    elif kind == "wrap":
        container[key] = [container[key]]
    else:
        held = container.pop(key)
        if kind == "rename" and isinstance(container, dict):
            container[f"{key}s"] = held
    return changed


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_a_shipped_config_fits_the_schema(
    path: Path, validator: jsonschema.Draft202012Validator
) -> None:
    assert [error.message for error in validator.iter_errors(Config.load(path).raw)] == []


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_damage_is_judged_alike(path: Path, validator: jsonschema.Draft202012Validator) -> None:
    raw, generator = Config.load(path).raw, random.Random(7)
    verdicts = set()
    for _ in range(NUM_DAMAGED):
        changed = damaged(raw, generator)
        problems = check(Experiment, changed, source=str(path)).problems
        is_refused = any(not problem.message.startswith(VALUES_TOGETHER) for problem in problems)
        assert validator.is_valid(changed) is not is_refused, changed
        verdicts.add(is_refused)
    assert verdicts == {True, False}
