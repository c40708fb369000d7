"""The plugin, imported for these tests only."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.plugin_scope import shipped_plugin

ROOT = Path(__file__).parents[3]
QUESTIONS = ROOT / "tests/fixtures/squad/train.json"


@pytest.fixture(scope="module", autouse=True)
def _plugin() -> Iterator[None]:
    with shipped_plugin("question_generation"):
        yield
