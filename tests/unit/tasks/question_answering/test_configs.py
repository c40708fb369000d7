"""The shipped configs of question answering, and the settings that are laid over them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import _jsonnet
import pytest

from elmo_framework.common.build import parse
from elmo_framework.experiment.experiment import Experiment

SQUAD = Path(__file__).parents[4] / "experiments" / "squad"


def config(code: str) -> dict[str, Any]:
    return dict(json.loads(_jsonnet.evaluate_snippet(str(SQUAD / "snippet"), code)))


@pytest.mark.parametrize("name", ["baseline", "elmo"])
def test_the_small_settings_fit_both_configs(name):
    small = config(f"(import '{name}.jsonnet') + (import 'small.libsonnet')")

    parse(Experiment, small, source=name)
    assert small["model"]["encoder"] == {"type": "gru", "hidden_size": 48, "bidirectional": True}


@pytest.mark.parametrize(
    ("baseline", "elmo", "places"),
    [("baseline", "elmo", 2), ("bidaf", "bidaf_elmo", 1)],
)
def test_a_config_with_elmo_is_its_baseline_and_elmo_alone(baseline, elmo, places):
    without, found = config(f"import '{baseline}.jsonnet'"), config(f"import '{elmo}.jsonnet'")

    added = [found["model"]["embedder"]["token_embedders"].pop("elmo")]
    added += [found["model"].pop("output_embedder")] if places == 2 else []

    assert found == without
    assert {block["type"] for block in added} == {"elmo_token_embedder"}
