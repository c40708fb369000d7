"""The plugin, imported for these tests only."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from elmo_framework.config.plugins import load_plugins
from tests.plugin_scope import without_plugins

ROOT = Path(__file__).parents[3]
QUESTIONS = ROOT / "tests/fixtures/squad/train.json"


@pytest.fixture(scope="module", autouse=True)
def _plugin() -> Iterator[None]:
    with without_plugins("plugins", "question_generation"), pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        load_plugins(["plugins.question_generation"])
        yield
