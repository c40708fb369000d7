"""The settings for two cores lie over a task's baseline and over that with ELMo alike."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.tasks.configs import EXPERIMENTS, shipped

TASKS = sorted(path.parent.name for path in EXPERIMENTS.glob("*/small.libsonnet"))


def small(name: str, task: str) -> dict[str, Any]:
    return shipped(f"(import '{name}.jsonnet') + (import 'small.libsonnet')", task)


def without_elmo(raw: dict[str, Any]) -> dict[str, Any]:
    """A config without the blocks that are ELMo's."""
    return {
        key: without_elmo(held) if isinstance(held, dict) else held
        for key, held in raw.items()
        if not (isinstance(held, dict) and held.get("type") == "elmo_token_embedder")
    }


@pytest.mark.parametrize("name", ["baseline", "elmo"])
@pytest.mark.parametrize("task", TASKS)
def test_small_settings_make_either_smaller(task: str, name: str) -> None:
    less, whole = small(name, task), shipped(f"import '{name}.jsonnet'", task)
    assert less["trainer"]["num_epochs"] < whole["trainer"]["num_epochs"]
    assert less["model"]["encoder"]["hidden_size"] < whole["model"]["encoder"]["hidden_size"]


@pytest.mark.parametrize("task", TASKS)
def test_small_settings_keep_the_difference_to_elmo(task: str) -> None:
    baseline, elmo = small("baseline", task), small("elmo", task)
    assert elmo != baseline
    assert without_elmo(elmo) == baseline
