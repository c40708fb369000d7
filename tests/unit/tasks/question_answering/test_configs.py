"""The shipped configs of question answering."""

from __future__ import annotations

import pytest

from tests.unit.tasks.configs import shipped


@pytest.mark.parametrize(
    ("baseline", "elmo", "places"),
    [("baseline", "elmo", 2), ("bidaf", "bidaf_elmo", 1)],
)
def test_elmo_config_adds_only_elmo(baseline, elmo, places):
    without, found = (shipped(f"import '{name}.jsonnet'", "squad") for name in (baseline, elmo))

    added = [found["model"]["embedder"]["token_embedders"].pop("elmo")]
    added += [found["model"].pop("output_embedder")] if places == 2 else []

    assert found == without
    assert {block["type"] for block in added} == {"elmo_token_embedder"}
