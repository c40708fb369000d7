"""The plugin, imported for these tests only."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.plugin_scope import shipped_plugin


@pytest.fixture(scope="module", autouse=True)
def _plugin() -> Iterator[None]:
    with shipped_plugin("allennlp_heads"):
        yield
