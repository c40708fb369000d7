import json
from typing import Any

import _jsonnet
import pytest

from elmo_framework import components
from elmo_framework.config.parse import parse
from elmo_framework.data.reader import DatasetReader
from elmo_framework.tasks.tagging.reader import Conll2003Reader
from tests.unit.tasks.configs import EXPERIMENTS, shipped

components.load()
BASELINE, ELMO = (f"import '{name}.jsonnet'" for name in ("baseline", "elmo"))


def placed(place: str) -> Any:
    code = f"(import 'lib/elmo.libsonnet').at('{place}', {{ bilm: 'b' }})"
    return json.loads(_jsonnet.evaluate_snippet(str(EXPERIMENTS / "snippet"), code))


def test_the_reader_of_the_baseline_is_built():
    raw = shipped(BASELINE, "ner")["dataset_reader"]

    reader = parse(DatasetReader, raw, source="x").build()

    assert isinstance(reader, Conll2003Reader)
    assert reader.coding_scheme == "BIOUL"


def test_elmo_config_adds_only_elmo():
    baseline, elmo = shipped(BASELINE, "ner"), shipped(ELMO, "ner")

    added = elmo["model"]["embedder"]["token_embedders"].pop("elmo")

    assert elmo == baseline
    assert added == {
        "type": "elmo_token_embedder",
        "bilm": "runs/bilm",
        "mix": {"type": "scalar_mix", "l2": 0.1},
        "dropout": 0,
    }


def test_elmo_is_at_the_input_the_output_or_both():
    elmo = {"type": "elmo_token_embedder", "bilm": "b"}
    before = {"embedder": {"token_embedders": {"elmo": elmo}}}

    assert placed("input") == {"model": before}
    assert placed("output") == {"model": {"output_embedder": elmo}}
    assert placed("both") == {"model": {**before, "output_embedder": elmo}}


def test_another_place_is_refused():
    with pytest.raises(
        RuntimeError, match=r"elmo\.at: the place is 'inptu'; choose from 'input', 'out"
    ):
        placed("inptu")
