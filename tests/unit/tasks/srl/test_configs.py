import json
from pathlib import Path
from typing import Any

import _jsonnet

EXPERIMENTS = Path(__file__).parents[4] / "experiments"


def config(name: str) -> dict[str, Any]:
    return dict(json.loads(_jsonnet.evaluate_file(str(EXPERIMENTS / "srl" / name))))


def test_the_config_with_elmo_is_the_baseline_and_elmo_alone():
    baseline, elmo = config("baseline.jsonnet"), config("elmo.jsonnet")

    added = elmo["model"]["embedder"]["token_embedders"].pop("elmo")

    assert elmo == baseline
    assert added == {
        "type": "elmo_token_embedder",
        "bilm": "runs/bilm",
        "mix": {"type": "scalar_mix", "l2": 0.001},
        "dropout": 0.1,
    }
