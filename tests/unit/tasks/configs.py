"""Shipped configurations as plain values, changed or not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import _jsonnet

from elmo_framework.config.parse import parse
from elmo_framework.experiment.experiment import Experiment

EXPERIMENTS = Path(__file__).parents[3] / "experiments"


def shipped(code: str, task: str) -> dict[str, Any]:
    """Evaluate jsonnet in the folder of a task, and refuse what is no configuration."""
    raw = json.loads(_jsonnet.evaluate_snippet(str(EXPERIMENTS / task / "snippet"), code))
    parse(Experiment, raw, source=task)
    return dict(raw)
