from abc import ABC
from typing import Any, final

import pytest

from elmo_framework.config.allennlp import refuse_allennlp_keys
from elmo_framework.config.registry import Registrable
from elmo_framework.errors import ConfigError, Problem

ELMO = {
    "type": "elmo_token_embedder",
    "options_file": "options.json",
    "do_layer_norm": False,
    "scalar_mix_parameters": [1, 0, 0],
}
WRITTEN_FOR_ALLENNLP: dict[str, Any] = {
    "dataset_reader": {
        "type": "conll2003",
        "token_indexers": {"elmo": {"type": "elmo_characters"}},
        "lazy": True,
    },
    "model": {
        "type": "crf_tagger",
        "text_field_embedder": {"token_embedders": {"elmo": ELMO}},
        "output_embedder": ELMO,
        "regularizer": {"regexes": [["scalar_parameters", {"type": "l2", "alpha": 0.1}]]},
        "initializer": [["weight", "orthogonal"]],
    },
    "iterator": {"type": "basic", "batch_size": 64},
    "data_loader": {"batch_sampler": {"type": "bucket"}},
    "trainer": {"cuda_device": 0, "optimizer": "adam"},
    "distributed": {"cuda_devices": [0, 1]},
    "pytorch_seed": 1,
}


ADVICE = ("use `", "remove it", "write the list")


class PluginPart(Registrable, ABC):
    """A family that a plugin brings along."""


@final
@PluginPart.register("cyclic_of_a_plugin")
class CyclicSchedule(PluginPart):
    def __init__(self, mode: str, num_epochs: int = 1) -> None:
        self.mode, self.num_epochs = mode, num_epochs


def test_each_allennlp_key_is_named_with_its_replacement() -> None:
    with pytest.raises(ConfigError) as caught:
        refuse_allennlp_keys(WRITTEN_FOR_ALLENNLP, source="ner.jsonnet")
    lines = str(caught.value).splitlines()
    assert lines[0] == "ner.jsonnet, written for AllenNLP: 13 problems in the configuration"
    assert [problem.path for problem in caught.value.problems] == [
        "dataset_reader.token_indexers",
        "dataset_reader.lazy",
        "model.text_field_embedder",
        "model.text_field_embedder.token_embedders.elmo.do_layer_norm",
        "model.text_field_embedder.token_embedders.elmo.scalar_mix_parameters",
        "model.output_embedder.do_layer_norm",
        "model.output_embedder.scalar_mix_parameters",
        "model.regularizer",
        "iterator",
        "data_loader.batch_sampler",
        "trainer.cuda_device",
        "distributed",
        "pytorch_seed",
    ]
    assert lines[3] == (
        "  model.text_field_embedder: a key of AllenNLP; use `embedder`: {token_embedders: {...}}"
    )
    assert all(any(advice in line for advice in ADVICE) for line in lines[1:])


@pytest.mark.parametrize(
    ("place", "theirs", "ours"),
    [
        ("model", "constrain_crf_decoding", "`constrain_transitions`"),
        ("model", "use_input_elmo", "`elmo_token_embedder` in `embedder`"),
        ("model", "use_integrator_output_elmo", "`elmo_token_embedder` in `embedder`"),
        ("tokens", "vocab_to_cache", "`cache`"),
        ("dataset_reader", "remove_singleton_clusters", "`remove_singletons`"),
        ("data_loader", "batch_sampler", "{batch_size or max_tokens, bucketing, shuffle}"),
        ("learning_rate_scheduler", "num_warmup_steps", "`warmup_steps`"),
        ("checkpointer", "save_every_num_seconds", "`save_every`: {minutes}"),
        ("checkpointer", "num_serialized_models_to_keep", "`keep_most_recent_by_count`"),
        ("embedding", "num_embeddings", "remove it: the characters are the 262"),
        ("dataset_reader", "max_span_width", "`max_span_width` of the `model`"),
        ("tokens", "vocab_namespace", "remove it"),
        ("vocabulary", "type", "remove it"),
        ("moving_average", "type", "remove it"),
        ("output_layer", "output_dims", "add `type`: 'maxout'"),
        ("output_layer", "pool_sizes", "add `type`: 'maxout'"),
    ],
)
def test_key_with_another_name_gets_the_new_name(place: str, theirs: str, ours: str) -> None:
    with pytest.raises(ConfigError, match=f"{place}.{theirs}: a key of AllenNLP; ") as caught:
        refuse_allennlp_keys({place: {theirs: 1}}, source="x")
    assert ours in str(caught.value)


@pytest.mark.parametrize("type_", [{}, {"type": "maxout"}])
def test_the_number_of_maxout_layers_is_that_of_their_widths(type_: dict[str, str]) -> None:
    layer = {"num_layers": 2, "output_dims": [6, 3], **type_}
    with pytest.raises(
        ConfigError, match=r"output_layer\.num_layers: a key of AllenNLP; remove it"
    ):
        refuse_allennlp_keys({"model": {"output_layer": layer}}, source="x")


def test_class_with_another_name_gets_the_new_name() -> None:
    encoder = {"type": "stacked_bidirectional_lstm", "use_highway": True}
    with pytest.raises(ConfigError) as caught:
        refuse_allennlp_keys({"model": {"encoder": encoder}}, source="x")
    (problem,) = caught.value.problems
    assert problem.path == "model.encoder.type"
    assert problem.message.startswith("a name of AllenNLP; use 'lstm' with `bidirectional`")


def test_keys_inside_lists_are_found() -> None:
    with pytest.raises(ConfigError, match=r"  readers\[0\]\.token_indexers: "):
        refuse_allennlp_keys({"readers": [{"token_indexers": {}}]}, source="x")


@pytest.mark.parametrize(
    "raw",
    [
        {"model": {"mix": {"type": "scalar_mix", "scalar_mix_parameters": [1, 0, 0]}}},
        {"model": {"encoder": {"shuffle": True, "lazy": True, "iterator": 1}}},
        {"data_loader": {"batch_size": 3, "shuffle": False}, "trainer": {"device": "cpu"}},
        {"model": {"output_layer": {"type": "maxout", "output_dims": [3], "pool_sizes": 2}}},
        {"model": {"output_layer": {"num_layers": 1, "hidden_dims": 3, "activations": "relu"}}},
    ],
)
def test_our_own_keys_and_those_of_plugins_pass(raw: dict[str, Any]) -> None:
    refuse_allennlp_keys(raw, source="x")


def test_keys_that_the_class_of_a_plugin_has_pass() -> None:
    block = {"type": "cyclic_of_a_plugin", "mode": "up", "num_epochs": 2}
    refuse_allennlp_keys({"trainer": {"learning_rate_scheduler": block}}, source="x")


@pytest.mark.parametrize("type_", ["cyclic_of_a_plugin", "cyclic_of_nobody", None, ["unhashable"]])
def test_keys_that_the_class_of_a_block_lacks_are_named(type_: object) -> None:
    raw = {"learning_rate_scheduler": {"type": type_, "num_steps_per_epoch": 3}}
    with pytest.raises(ConfigError, match="num_steps_per_epoch: a key of AllenNLP; remove it"):
        refuse_allennlp_keys(raw, source="x")


def test_other_problems_are_named_before() -> None:
    missing = Problem("", "no module named")
    with pytest.raises(ConfigError) as caught:
        refuse_allennlp_keys({"iterator": {}}, source="x", others=[missing])
    assert [problem.path for problem in caught.value.problems] == ["", "iterator"]
    refuse_allennlp_keys({}, source="x", others=[missing])
