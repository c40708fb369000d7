from pathlib import Path

from elmo_framework.config.parse import check, parse
from elmo_framework.config.resolve import filled, leaves, paths_in
from elmo_framework.config.types import ExistingPath
from tests.unit.config.example import FILLED, SOURCE, Model, Study, flat, tagger


def test_a_filled_config_has_every_default() -> None:
    assert filled(parse(Study, flat(), source=SOURCE)) == FILLED


def test_filled_config_parses_to_the_same() -> None:
    assert filled(parse(Study, FILLED, source=SOURCE)) == FILLED


def test_nested_values_are_written_as_json() -> None:
    raw = tagger(pair=[1, 2], layers=[0], encoder={"type": "compose", "encoders": ["lstm"]})
    raw["encoder"]["encoders"] = [{"type": "lstm", "hidden_size": 2}]
    written = filled(parse(Model, raw, source=SOURCE))
    assert (written["pair"], written["layers"]) == ([1, 2], [0])
    assert written["encoder"]["encoders"][0]["num_layers"] == 1


def test_values_are_found_in_lists_dicts_options_and_lazy_parts() -> None:
    raw = flat(
        model=tagger(encoder={"type": "compose", "encoders": [{"type": "sized", "input_size": 3}]}),
        trainer={"warmup": {"steps": 4}},
    )
    found = {leaf.path: leaf for leaf in leaves(parse(Study, raw, source=SOURCE))}
    assert found["model.encoder.encoders[0].input_size"].value == 3
    assert found["trainer.warmup.steps"].value == 4
    assert found["model.embedder.token_embedders.tokens.embedding_dim"].value == 50
    bilm = found["model.embedder.token_embedders.elmo.bilm"]
    assert (bilm.value, bilm.hint) == (Path("runs/bilm"), ExistingPath)


def test_refused_values_are_none_or_absent() -> None:
    raw = flat(train_data_path=3, data_loader=[], trainer={"warmup": {}})
    component = check(Study, raw, source=SOURCE).component
    assert component is not None
    found = {leaf.path: leaf.value for leaf in leaves(component)}
    assert found["train_data_path"] is None
    assert not any(path.startswith(("data_loader", "trainer.warmup")) for path in found)


def test_the_paths_of_a_value_are_found_in_lists_and_dicts() -> None:
    value = {"a": [Path("x"), "y"], "b": (Path("z"),)}
    assert list(paths_in(value, "c")) == [("c.a[0]", Path("x")), ("c.b[0]", Path("z"))]
