from elmo_framework.common.build import parse
from elmo_framework.common.filled import filled
from tests.unit.common.example import FILLED, SOURCE, Experiment, Model, flat, tagger


def test_a_filled_config_has_every_default() -> None:
    assert filled(parse(Experiment, flat(), source=SOURCE)) == FILLED


def test_a_filled_config_says_the_same_again() -> None:
    assert filled(parse(Experiment, FILLED, source=SOURCE)) == FILLED


def test_nested_values_are_written_as_json() -> None:
    raw = tagger(pair=[1, 2], layers=[0], encoder={"type": "compose", "encoders": ["lstm"]})
    raw["encoder"]["encoders"] = [{"type": "lstm", "hidden_size": 2}]
    written = filled(parse(Model, raw, source=SOURCE))
    assert (written["pair"], written["layers"]) == ([1, 2], [0])
    assert written["encoder"]["encoders"][0]["num_layers"] == 1
