"""The table of parameters of AllenNLP's models and ours, against our models of today."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

import pytest
from peer_configs import CONFIGS
from peer_models import TABLE, without_counterpart

from elmo_framework.compat.allennlp.translate import translate_allennlp
from elmo_framework.config.parse import parse
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.experiment.experiment import Experiment
from elmo_framework.experiment.model_report import frozen_parameters
from elmo_framework.model.weights import without_weights
from tests.plugin_scope import shipped_plugin

RECORDED = json.loads(TABLE.read_text(encoding="utf-8"))


@pytest.fixture(autouse=True, scope="module")
def _heads() -> Iterator[None]:
    with shipped_plugin("allennlp_heads"):
        yield


@pytest.mark.parametrize("name", CONFIGS)
def test_models_have_the_recorded_parameters(name: str) -> None:
    translation = translate_allennlp(CONFIGS[name], name)
    assert translation is not None
    experiment = parse(Experiment, translation.raw, source=name).build()
    vocabularies = observed(experiment.count_vocabularies())
    with without_weights():
        model = experiment.model.build(vocabularies=vocabularies, weights_follow=True)
    assert sum(each.numel() for each in model.parameters()) == RECORDED[name]["here"]
    assert RECORDED[name]["elmo"] == bool(frozen_parameters(model))


def observed(counted: Vocabularies) -> Vocabularies:
    """Return what is in the data; here tags of the same labels are added, which AllenNLP lacks."""
    return Vocabularies(
        {
            name: Counter({item: count for item, count in counted.counted(name).items() if count})
            for name in counted.names
        }
    )


def test_each_difference_of_parameters_has_a_name() -> None:
    assert RECORDED.keys() == CONFIGS.keys()
    for row in RECORDED.values():
        assert row["allennlp"] - row["here"] == sum(row["without_counterpart"].values())


def test_biases_of_layers_and_directions_are_added_up() -> None:
    names = [f"e._module.{way}_layer_0.cell" for way in ("forward", "backward")]
    pairs = [(f"{name}.state_linearity.bias", f"e.{name}.bias") for name in names]
    theirs = {
        f"{name}.{kind}_linearity.bias": 20 for name in names for kind in ("input", "state")
    } | {"p._module.bias": 1}
    ours = {f"e.{name}.bias": 20 for name in names}
    numbers = without_counterpart([*pairs, ("p._module.bias", "")], theirs, ours)
    assert sum(numbers.values()) == sum(theirs.values()) - sum(ours.values())
    assert numbers["p._module.bias"] == 1
