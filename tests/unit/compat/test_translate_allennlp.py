"""Configs of AllenNLP become ours: each key is translated, dropped with a reason, or refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from elmo_framework import components
from elmo_framework.commands.main import main
from elmo_framework.compat.allennlp.parameter_names import names
from elmo_framework.compat.allennlp.recognize import mark_of_allennlp
from elmo_framework.compat.allennlp.training import OPTIMIZERS
from elmo_framework.compat.allennlp.translate import translate_allennlp
from elmo_framework.config.load import Config, Translation
from elmo_framework.errors import ConfigError, Problem
from elmo_framework.experiment.check import check_config
from elmo_framework.experiment.model_report import AssumedVocabularies, _on_meta
from tests.unit.compat.configs import CHARACTERS, CONFIGS, ELMO, WORDS, config


def translation(name: str, changes: dict[str, Any] | None = None) -> Translation:
    translated = translate_allennlp(config(name, changes), "old.jsonnet")
    assert translated is not None
    return translated


def ours(name: str, changes: dict[str, Any] | None = None) -> dict[str, Any]:
    return translation(name, changes).raw


def problems(name: str, changes: dict[str, Any]) -> list[Problem]:
    with pytest.raises(ConfigError) as caught:
        translation(name, changes)
    return list(caught.value.problems)


def named_parameters(raw: dict[str, Any]) -> set[str]:
    """Return the names of the parameters of a model, whose config has no problems."""
    components.load()
    experiment, *_ = check_config(Config(raw, "old.jsonnet", "")).unwrap()
    model = _on_meta(experiment.arguments["model"], AssumedVocabularies())
    return {name for name, _ in model.named_parameters()}


@pytest.mark.parametrize("name", CONFIGS)
def test_translated_config_has_no_problems(name: str) -> None:
    components.load()
    assert not check_config(Config(ours(name), "old.jsonnet", "")).problems


@pytest.mark.parametrize("name", CONFIGS)
def test_each_parameter_has_a_name_in_allennlp(name: str) -> None:
    raw = ours(name)
    assert named_parameters(raw) == {own for _, own in names(raw["model"]) if own}


def test_config_of_ours_is_left_alone() -> None:
    raw = {"model": {"type": "crf_tagger", "embedder": {}}, "trainer": {"cuda_device": 0}}
    assert translate_allennlp(raw, "ours.jsonnet") is None
    assert mark_of_allennlp({"plugins": ["a"], "iterator": {}}) is None


def test_missing_types_are_named_first_all_at_once() -> None:
    changes = {
        "trainer.top": 1,
        "model.encoder": {"type": "gated-cnn-encoder", "input_dim": 3},
        "trainer.learning_rate_scheduler": {"type": "cosine", "t_initial": 3},
        "model.text_field_embedder.token_embedders.elmo.type": "bag_of_word_counts",
    }
    listed = [problem.path for problem in problems("crf_tagger", changes)]
    assert listed == [
        "model.text_field_embedder.token_embedders.elmo.type",
        "model.encoder.type",
        "trainer.learning_rate_scheduler.type",
        "trainer.top",
    ]


def test_a_key_that_stays_has_no_row() -> None:
    old = translation("crf_tagger", {"trainer.num_serialized_models_to_keep": 3}).summary
    assert "becomes  checkpointer.keep_most_recent_by_count" in old
    trainer = {"optimizer": "adam", "checkpointer": {"keep_most_recent_by_count": 3}}
    assert (
        "keep_most_recent_by_count" not in translation("crf_tagger", {"trainer": trainer}).summary
    )


def test_what_follows_from_a_missing_type_is_not_listed() -> None:
    (problem,) = problems("crf_tagger", {"dataset_reader.type": "mine"})
    assert problem.path == "dataset_reader.type"
    indexer = "dataset_reader.token_indexers.token_characters.type"
    (problem,) = problems("crf_tagger", {indexer: "ngrams"})
    assert problem.path == indexer


def test_values_without_a_counterpart_are_written_as_in_the_config() -> None:
    changes = {
        "model.coarse_to_fine": True,
        "vocabulary": {
            "only_include_pretrained_words": True,
            "min_pretrained_embeddings": {"tokens": 3},
        },
        "dataset_reader.token_indexers.tokens.feature_name": "pos_",
    }
    messages = [f"{problem.path}: {problem.message}" for problem in problems("coref", changes)]
    assert messages == [
        'dataset_reader.token_indexers.tokens.feature_name: "pos_" has no counterpart here; only '
        '"text" has',
        "vocabulary.only_include_pretrained_words: true has no counterpart here; only false has",
        "vocabulary.min_pretrained_embeddings: has no counterpart here",
        "model.coarse_to_fine: true has no counterpart here; only false has",
    ]


def test_unknown_key_is_refused_with_the_nearest() -> None:
    (problem,) = problems("crf_tagger", {"trainer.pateince": 1})
    assert problem.path == "trainer.pateince"
    assert "Did you mean 'patience'?" in problem.message


def test_maxout_leaves_out_the_layer_of_the_labels() -> None:
    layer = ours("bcn")["model"]["output_layer"]
    assert layer == {
        "type": "maxout",
        "output_dims": [12, 6],
        "dropout": [0.2, 0.3],
        "pool_sizes": 4,
    }
    (problem,) = problems("bcn", {"model.output_layer.dropout": 0.2})
    assert problem.path == "model.output_layer.dropout"


def test_last_feedforward_layer_of_a_bcn_must_be_linear() -> None:
    layer = {"input_dim": 3, "num_layers": 2, "hidden_dims": [4, 5], "activations": "relu"}
    (problem,) = problems("bcn", {"model.output_layer": layer})
    assert problem.path == "model.output_layer.activations"
    layer["activations"] = ["relu", "linear"]
    assert ours("bcn", {"model.output_layer": layer})["model"]["output_layer"] == {
        "type": "feedforward",
        "hidden_dims": [4],
        "num_layers": 1,
        "activations": ["relu"],
    }


def test_elmo_of_a_bcn_is_at_both_places() -> None:
    model = ours("bcn")["model"]
    assert model["embedder"]["token_embedders"]["elmo"] == model["output_embedder"]
    model = ours(
        "bcn", {"model.use_input_elmo": False, "model.elmo.num_output_representations": 1}
    )["model"]
    assert "elmo" not in model["embedder"]["token_embedders"]
    (problem,) = problems("bcn", {"model.elmo.num_output_representations": 1})
    assert problem.path == "model.elmo.num_output_representations"


def test_lowercase_indexer_becomes_a_key_of_the_embedder() -> None:
    embedders = ours("crf_tagger")["model"]["embedder"]["token_embedders"]
    assert embedders["tokens"]["lowercase"] is True
    assert "lowercase" not in embedders["token_characters"]


_CHARACTERS = "dataset_reader.token_indexers.token_characters"


def of_characters(indexer: Any) -> dict[str, Any]:
    model = ours("crf_tagger", {_CHARACTERS: indexer})["model"]
    embedder = model["embedder"]["token_embedders"]["token_characters"]
    assert isinstance(embedder, dict)
    return embedder


def test_characters_are_a_vocabulary_or_bytes() -> None:
    embedder = of_characters({"type": "characters", "min_padding_length": 3})
    assert (embedder["characters"], embedder["max_characters_per_token"]) == ("vocabulary", 1000)
    assert embedder["encoder"]["short_sequences"] == "zero"
    spelled = {"byte_encoding": "utf-8", "start_tokens": [259], "end_tokens": [260]}
    indexer = {"type": "characters", "character_tokenizer": spelled}
    assert of_characters(indexer)["characters"] == "bytes"
    assert of_characters("elmo_characters")["characters"] == "bytes"


@pytest.mark.parametrize(
    ("tokenizer", "key"),
    [
        ({"lowercase_characters": True}, "lowercase_characters"),
        ({"start_tokens": ["<"]}, "start_tokens"),
        ({"byte_encoding": "utf-8", "end_tokens": [260, 261]}, "end_tokens"),
        ({"byte_encoding": "utf-16"}, "byte_encoding"),
    ],
)
def test_other_tokenizers_of_characters_are_refused(tokenizer: Any, key: str) -> None:
    indexer = {"type": "characters", "character_tokenizer": tokenizer}
    (problem,) = problems("crf_tagger", {_CHARACTERS: indexer})
    assert problem.path == f"{_CHARACTERS}.character_tokenizer.{key}"


def test_bytes_without_marks_differ_in_effect() -> None:
    tokenizer = {"type": "character", "byte_encoding": "utf-8"}
    indexer = {"type": "characters", "character_tokenizer": tokenizer}
    summary = translation("crf_tagger", {_CHARACTERS: indexer}).summary
    assert re.search(r"character_tokenizer +differs +bytes have a mark", summary)


def test_embedders_are_in_alphabetical_order() -> None:
    embedders = ours("crf_tagger")["model"]["embedder"]["token_embedders"]
    assert [*embedders] == ["elmo", "token_characters", "tokens"]


def test_coreference_has_neither_speakers_nor_genre() -> None:
    model = ours("coref")["model"]
    assert (model["use_speakers"], model["use_genre"]) == (False, False)
    assert (model["encoder_reads"], model["embedder_reads"]) == ("document", "document")
    assert (model["attention_reads"], model["crossing_spans"]) == ("embedder", True)
    assert model["dropout"] == 0


def test_elmo_of_coreference_has_no_cache() -> None:
    path = "model.text_field_embedder.token_embedders.elmo"
    changes = {
        path: ELMO,
        "dataset_reader.token_indexers.elmo": {"type": "elmo_characters"},
        "model.context_layer.input_size": 10 + 256,
        "model.mention_feedforward.input_dim": 33 + 256,
        "model.antecedent_feedforward.input_dim": 3 * (33 + 256) + 7,
    }
    translated = translation("coref", changes)
    assert translated.raw["model"]["embedder"]["token_embedders"]["elmo"]["cache"] == "none"
    assert f"{path}.cache" in translated.summary


def test_stated_widths_are_checked_under_their_path() -> None:
    components.load()
    raw = ours("coref", {"model.antecedent_feedforward.input_dim": 1})
    (problem,) = check_config(Config(raw, "old.jsonnet", "")).problems
    assert problem.path.startswith("model.antecedent_feedforward")


def test_layer_norm_of_a_character_network_is_no_layer_mix() -> None:
    network = {"type": "cnn-highway", "embedding_dim": 4, "do_layer_norm": True}
    where = "model.text_field_embedder.token_embedders.token_characters.encoder"
    (problem,) = problems("crf_tagger", {where: network})
    assert problem.path == f"{where}.type"
    assert "cnn-highway" in problem.message


@pytest.mark.parametrize("has_type", [False, True])
def test_three_forms_of_text_field_embedders_are_one(has_type: bool) -> None:
    inner = {"tokens": WORDS, "elmo": ELMO, "token_characters": CHARACTERS}
    expected = ours("crf_tagger")["model"]["embedder"]
    before = {"model.text_field_embedder": {**({"type": "basic"} if has_type else {}), **inner}}
    assert ours("crf_tagger", before)["model"]["embedder"] == expected
    mapped = {
        "token_embedders": inner,
        "allow_unmatched_keys": True,
        "embedder_to_indexer_map": {"elmo": {"character_ids": "elmo"}, "tokens": ["tokens"]},
    }
    assert (
        ours("crf_tagger", {"model.text_field_embedder": mapped})["model"]["embedder"] == expected
    )


def test_embedder_without_its_indexer_is_refused() -> None:
    where = "dataset_reader.token_indexers"
    (problem,) = problems("crf_tagger", {where: {"tokens": "single_id", "elmo": "elmo_characters"}})
    assert problem.path == "model.text_field_embedder.token_embedders.token_characters"
    (problem,) = problems("crf_tagger", {f"{where}.elmo.type": "single_id"})
    assert "it needs elmo_characters" in problem.message


@pytest.mark.parametrize(
    ("iterator", "loader"),
    [
        ({"type": "basic", "batch_size": 4}, {"batch_size": 4}),
        (
            {"type": "bucket", "sorting_keys": [["tokens", "num_tokens"]], "padding_noise": 0.2},
            {"bucketing": True},
        ),
        (
            {"type": "basic", "maximum_samples_per_batch": ["num_tokens", 90]},
            {"max_tokens": 90},
        ),
        (
            {"type": "multiprocess", "base_iterator": {"type": "basic"}, "num_workers": 2},
            {},
        ),
    ],
)
def test_iterator_becomes_a_data_loader(iterator: Any, loader: Any) -> None:
    changes = {"iterator": iterator}
    assert ours("crf_tagger", changes)["data_loader"] == loader
    changes["trainer.shuffle"] = False
    assert ours("crf_tagger", changes)["data_loader"] == {**loader, "shuffle": False}


@pytest.mark.parametrize(
    ("theirs", "loader"),
    [
        ({"batch_size": 4, "num_workers": 2}, {"batch_size": 4, "shuffle": False}),
        ({"batch_size": 4, "shuffle": True}, {"batch_size": 4}),
        (
            {"batch_sampler": {"type": "bucket", "batch_size": 4, "sorting_keys": ["tokens"]}},
            {"batch_size": 4, "bucketing": True},
        ),
        (
            {"batch_sampler": {"type": "max_tokens_sampler", "max_tokens": 90}},
            {"max_tokens": 90, "batch_size": 1_000_000, "bucketing": True},
        ),
    ],
)
def test_data_loader_keeps_order_and_buckets(theirs: Any, loader: Any) -> None:
    assert ours("esim", {"data_loader": theirs})["data_loader"] == loader


def test_differences_of_batches_are_in_the_table() -> None:
    iterator = {"type": "bucket", "sorting_keys": [], "padding_noise": 0.2, "batch_size": 2}
    summary = translation("crf_tagger", {"iterator": iterator}).summary
    for key in ("iterator.sorting_keys", "iterator.padding_noise"):
        assert any(line.split()[:2] == [key, "differs"] for line in summary.splitlines())


def test_expressions_match_the_same_parameters() -> None:
    changes = {
        "model.initializer": {
            "regexes": [
                ["tag_projection_layer.*weight", "zero"],
                [".*weight_hh.*", {"type": "orthogonal"}],
                ["token_embedder_token_characters.*conv_layer_\\d.weight", "xavier_uniform"],
                ["nothing_of_this_name", "zero"],
            ],
            "prevent_regexes": ["text_field_embedder.token_embedder_tokens.*"],
        },
        "trainer.no_grad": [".*elmo.*gamma"],
    }
    raw = ours("crf_tagger", changes)
    inside = r"embedder\.token_embedders"
    assert raw["model"]["initializer"] == [
        [
            rf"^({inside}\.token_characters\.embedding\.weight|{inside}\.tokens\.embedding\.weight)$",
            {"type": "xavier_uniform"},
        ],
        [rf"^{inside}\.tokens\.embedding\.weight$", "prevent"],
        [r"^projection\.weight$", {"type": "zero"}],
        [".*weight_hh.*", {"type": "orthogonal"}],
        [
            rf"^{inside}\.token_characters\.encoder\.convolutions\.\d+\.weight$",
            {"type": "xavier_uniform"},
        ],
    ]
    assert raw["model"]["regularizer"] == [["scalar_parameters", {"type": "l2", "alpha": 0.1}]]
    assert raw["trainer"]["no_grad"] == [".*elmo.*gamma"]
    assert "nothing_of_this_name" in translation("crf_tagger", changes).summary


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("model.initializer", []),
        ("model.initializer", {}),
        ("model.initializer.regexes", []),
        ("model.initializer.prevent_regexes", []),
        ("model.initializer.prevent_regexes", None),
        ("model.regularizer", []),
        ("model.regularizer.regexes", []),
        ("trainer.no_grad", []),
        ("trainer.optimizer.parameter_groups", []),
    ],
)
def test_empty_expressions_are_dropped_with_a_row(path: str, value: Any) -> None:
    changes: dict[str, Any] = {"model.initializer": {}, "model.regularizer": {}}
    changes |= {"trainer.optimizer": {"type": "adam"}, path: value}
    summary = translation("crf_tagger", changes).summary
    assert re.search(rf"^{path} +dropped ", summary, re.MULTILINE)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("model.initializer", 0),
        ("model.initializer.regexes", 0),
        ("model.initializer.prevent_regexes", "x"),
        ("model.initializer.type", "default"),
        ("model.regularizer.prevent_regexes", ["x"]),
        ("trainer.no_grad", 0),
    ],
)
def test_wrong_keys_of_expressions_are_refused(path: str, value: Any) -> None:
    changes = {"model.initializer": {}, "model.regularizer": {}, path: value}
    (problem,) = problems("crf_tagger", changes)
    assert problem.path == path


def test_prevent_applies_before_other_expressions() -> None:
    applied = [["_encoder.*weight_ih", {"type": "zero"}], ["_encoder.*weight", "prevent"]]
    written = ours("esim", {"model.initializer": applied})["model"]["initializer"]
    assert [rule[1] for rule in written[1:]] == [{"type": "prevent"}, {"type": "zero"}]


def test_vectors_without_a_file_start_as_in_allennlp() -> None:
    """Xavier's bound depends on the size of the vocabulary; ours does not."""
    translated = translation("coref", {"model.initializer": []})
    (rule,) = translated.raw["model"]["initializer"]
    assert rule == [
        r"^(antecedents\.distance_embedding\.weight|embedder\.token_embedders\.tokens\.embedding\."
        r"weight|mentions\.width_embedding\.weight)$",
        {"type": "xavier_uniform"},
    ]
    assert re.search(r"^model.initializer +added +xavier_uniform", translated.summary, re.MULTILINE)


def test_vectors_that_no_rule_may_fill_start_as_in_allennlp_too() -> None:
    prevented = [["text_field_embedder.*", "prevent"]]
    first, second = ours("simple_tagger", {"model.initializer": prevented})["model"]["initializer"]
    pattern = r"^embedder\.token_embedders\.tokens\.embedding\.weight$"
    assert first == [pattern, {"type": "xavier_uniform"}]
    assert second[1] == {"type": "prevent"}


def test_vectors_from_a_file_and_those_of_a_trained_model_have_no_initializer() -> None:
    path = "model.text_field_embedder.token_embedders.tokens.pretrained_file"
    changes: dict[str, Any] = {"model.initializer": []}
    (rule,) = ours("coref", {path: "vectors.txt", **changes})["model"]["initializer"]
    assert "width" in rule[0]
    assert "tokens" not in rule[0]
    trained = translate_allennlp(config("coref", changes), "model.tar.gz", has_weights=True)
    assert trained is not None
    assert "initializer" not in trained.raw["model"]


WITHOUT_COUNTERPART = {
    "trainer.opt_level": "O1",
    "trainer.momentum_scheduler": {"type": "inverted_triangular"},
    "trainer.optimizer": {"type": "lamb", "lr": 0.1},
    "trainer.moving_average": {"type": "exponential", "numerator": 2},
    "data_loader": {"batch_size": 4, "batches_per_epoch": 10},
}
"""Settings of a training, with the places of what is wrong with them."""


def test_a_trained_model_needs_no_settings_of_its_training() -> None:
    raw = config("simple_tagger", WITHOUT_COUNTERPART)
    with pytest.raises(ConfigError) as refused:
        translate_allennlp(raw, "config.json")
    paths = {each.path for each in refused.value.problems}
    assert paths == {
        "trainer.opt_level",
        "trainer.momentum_scheduler",
        "trainer.optimizer.type",
        "trainer.moving_average.numerator",
        "data_loader.batches_per_epoch",
    }
    trained = translate_allennlp(raw, "model.tar.gz", has_weights=True)
    assert trained is not None
    left = trained.raw["trainer"].keys()
    assert not left & {"optimizer", "opt_level", "momentum_scheduler", "moving_average"}
    assert trained.raw["data_loader"] == {"batch_size": 4, "shuffle": False}
    for path in paths:
        row = rf"^{re.escape(path)} +dropped +.*; predictions do not depend on it$"
        assert re.search(row, trained.summary, re.MULTILINE), path


@pytest.mark.parametrize("trainer", [{"type": "no_op"}, [1]])
def test_a_trained_model_needs_no_trainer_with_a_counterpart(trainer) -> None:
    trained = translate_allennlp(
        config("simple_tagger", {"trainer": trainer}), "model.tar.gz", has_weights=True
    )
    assert trained is not None
    assert trained.raw.get("trainer", {}) == {}


def test_a_trained_model_needs_its_other_keys() -> None:
    raw = config("simple_tagger", {"model.no_such_key": 1, **WITHOUT_COUNTERPART})
    with pytest.raises(ConfigError) as refused:
        translate_allennlp(raw, "model.tar.gz", has_weights=True)
    assert [each.path for each in refused.value.problems] == ["model.no_such_key"]


def with_transformer(**keys: Any) -> Translation:
    kind = {"type": "pretrained_transformer_mismatched", "model_name": "models/bert"}
    changes = {
        "dataset_reader.token_indexers": {"tokens": kind},
        "model.text_field_embedder": {"token_embedders": {"tokens": {**kind, **keys}}},
    }
    return translation("basic_classifier", changes)


def test_what_differs_in_a_transformer_is_in_the_table() -> None:
    keys = {"max_length": 128, "last_layer_only": False, "train_parameters": False}
    translated = with_transformer(**keys)
    (ours,) = translated.raw["model"]["embedder"]["token_embedders"].values()
    assert ours["cache_dtype"] == "float32"
    inside = "model.text_field_embedder.token_embedders.tokens"
    rows = [line.split()[:2] for line in translated.summary.splitlines()]
    assert [f"{inside}.max_length", "differs"] in rows
    assert [f"{inside}.last_layer_only", "differs"] in rows
    assert [f"{inside}.cache_dtype", "added"] in rows


def test_tuned_transformer_has_nothing_to_add() -> None:
    translated = with_transformer(last_layer_only=True)
    (ours,) = translated.raw["model"]["embedder"]["token_embedders"].values()
    assert "cache_dtype" not in ours
    assert "differs" not in translated.summary.replace("iterator", "")


def test_elmo_of_a_text_field_embedder_of_a_bcn_is_frozen() -> None:
    changes = {
        "dataset_reader.token_indexers.elmo": {"type": "elmo_characters"},
        "model.text_field_embedder": {"token_embedders": {"elmo": ELMO, "tokens": WORDS}},
        "model.elmo": None,
        "model.use_input_elmo": False,
        "model.use_integrator_output_elmo": False,
        "trainer.no_grad": ["^_text_field_embedder.token_embedder_elmo"],
    }
    (pattern,) = ours("bcn", changes)["trainer"]["no_grad"]
    assert re.search(pattern, "embedder.token_embedders.elmo.mix.gamma")
    changes["trainer.no_grad"] = ["^_elmo"]
    assert "no_grad" not in ours("bcn", changes)["trainer"]


def test_missing_indexers_are_those_of_words() -> None:
    raw = ours("esim", {"dataset_reader.token_indexers": None})
    assert list(raw["model"]["embedder"]["token_embedders"]) == ["tokens"]


def test_cached_words_of_elmo_are_dropped() -> None:
    key = "namespace_to_cache"
    embedder = "model.text_field_embedder.token_embedders.elmo"
    elmo = ours("crf_tagger", {f"{embedder}.{key}": "tokens"})["model"]["embedder"]
    assert key not in elmo["token_embedders"]["elmo"]


def test_frozen_groups_of_parameters_become_no_grad() -> None:
    groups = [[["token_embedder_tokens", "^crf"], {"requires_grad": False}], [["encoder"], {}]]
    changes = {"trainer.optimizer.parameter_groups": groups, "trainer.no_grad": ["scalar_mix"]}
    expected = ["^embedder\\.token_embedders\\.tokens\\.embedding\\.weight$", "^crf"]
    raw = ours("crf_tagger", changes)
    assert raw["trainer"]["no_grad"][:2] == expected
    assert len(raw["trainer"]["no_grad"]) == 3
    components.load()
    assert not check_config(Config(raw, "old.jsonnet", "")).problems


_GROUPS = "trainer.optimizer.parameter_groups"


def test_groups_with_rates_become_groups_of_the_trainer() -> None:
    groups = [
        [["token_embedder_tokens", "^crf"], {"lr": 0.1, "weight_decay": 0.01}],
        [["^encoder._module"], {"weight_decay": 0.0}],
        [["tag_projection_layer"], {}],
        [["nothing_of_this_name"], {"lr": 1.0}],
    ]
    raw = ours("crf_tagger", {_GROUPS: groups})
    assert raw["trainer"]["optimizer"] == {"type": "adam", "lr": 0.001}
    tokens = r"^embedder\.token_embedders\.tokens\.embedding\.weight$"
    first, second = raw["trainer"]["parameter_groups"]
    assert first == {"parameters": [tokens, "^crf"], "lr": 0.1, "weight_decay": 0.01}
    assert second["weight_decay"] == 0.0
    (pattern,) = second["parameters"]
    matched = {name for name in named_parameters(raw) if re.search(pattern, name)}
    assert matched
    assert all(name.startswith("encoder.lstm") for name in matched)
    summary = translation("crf_tagger", {_GROUPS: groups}).summary
    assert re.search(r"parameter_groups\[2\] +dropped +it changes nothing", summary)
    assert re.search(r"parameter_groups\[3\] +dropped +'nothing_of_this_name' matches", summary)


@pytest.mark.parametrize(
    ("groups", "path"),
    [
        ([[["encoder"], {"betas": [0.9, 0.99]}]], f"{_GROUPS}[0].betas"),
        ([[["encoder"], {"requires_grad": False, "lr": 1.0}]], f"{_GROUPS}[0].requires_grad"),
        ([[["encoder"], {"requires_grad": True}]], f"{_GROUPS}[0].requires_grad"),
        ([["encoder"]], f"{_GROUPS}[0]"),
        ({"encoder": {}}, _GROUPS),
    ],
)
def test_other_groups_of_parameters_have_no_counterpart(groups: Any, path: str) -> None:
    (problem,) = problems("crf_tagger", {_GROUPS: groups})
    assert problem.path == path


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("cuda_device", -1, {"device": "cpu"}),
        ("cuda_device", 0, {"device": "auto"}),
        ("cuda_device", [0, 1], {"device": "auto"}),
        ("num_serialized_models_to_keep", 3, {"checkpointer": {"keep_most_recent_by_count": 3}}),
        (
            "num_serialized_models_to_keep",
            None,
            {"checkpointer": {"keep_most_recent_by_count": 1_000_000}},
        ),
        ("model_save_interval", 90, {"checkpointer": {"save_every": {"minutes": 1.5}}}),
        ("should_log_learning_rate", True, {}),
        ("should_log_parameter_statistics", True, {}),
        ("summary_interval", 7, {"callbacks": [{"type": "tensorboard", "summary_interval": 7}]}),
        ("moving_average", {"type": "exponential"}, {"moving_average": {"decay": 0.9999}}),
        ("use_amp", True, {"precision": "bfloat16"}),
        ("grad_norm", True, {}),
        ("grad_norm", False, {}),
        ("validation_metric", ["+accuracy"], {"validation_metric": "+accuracy"}),
        ("world_size", 2, {}),
        ("ddp_accelerator", {"type": "torch", "find_unused_parameters": True}, {}),
        (
            "learning_rate_scheduler",
            {"type": "reduce_on_plateau", "factor": 0.5, "mode": "min", "patience": 0},
            {
                "learning_rate_scheduler": {
                    "type": "reduce_on_plateau",
                    "factor": 0.5,
                    "patience": 0,
                }
            },
        ),
        (
            "learning_rate_scheduler",
            {"type": "step", "step_size": 8, "gamma": 0.5},
            {
                "learning_rate_scheduler": {
                    "type": "multi_step",
                    "milestones": [8, 16],
                    "gamma": 0.5,
                }
            },
        ),
        (
            "learning_rate_scheduler",
            {"type": "linear_with_warmup", "num_epochs": 20, "num_steps_per_epoch": 2},
            {"learning_rate_scheduler": {"type": "linear_with_warmup", "warmup_steps": 100}},
        ),
        (
            "optimizer",
            {"type": "adagrad"},
            {"optimizer": {"type": "adagrad", "lr": 0.01, "initial_accumulator_value": 0.0}},
        ),
        ("optimizer", {"type": "dense_sparse_adam"}, {"optimizer": {"type": "adam"}}),
    ],
)
def test_key_of_the_trainer_becomes_ours(key: str, value: Any, expected: Any) -> None:
    raw = ours("esim", {"trainer": {key: value}})
    assert raw["trainer"] == expected


@pytest.mark.parametrize(
    ("scheduler", "expected"),
    [
        ("constant", "constant"),
        ("reduce_on_plateau", "reduce_on_plateau"),
        ({"type": "multi_step", "milestones": [2, 4], "gamma": 0.3}, "multi_step"),
        ({"type": "step", "step_size": 2}, "multi_step"),
        ("exponential", "exponential"),
        ({"type": "noam", "model_size": 16, "warmup_steps": 10}, "noam"),
        ({"type": "slanted_triangular", "cut_frac": 0.2, "ratio": 16}, "slanted_triangular"),
        ({"type": "linear_with_warmup", "warmup_steps": 5}, "linear_with_warmup"),
        ({"type": "polynomial_decay", "warmup_steps": 5}, "linear_with_warmup"),
        ({"type": "constant_with_warmup", "num_warmup_steps": 5}, "constant_with_warmup"),
        ({"type": "cosine_with_warmup", "num_warmup_steps": 5}, "cosine_with_warmup"),
    ],
)
def test_each_scheduler_has_its_counterpart(scheduler: Any, expected: str) -> None:
    components.load()
    raw = ours("esim", {"trainer.learning_rate_scheduler": scheduler})
    assert raw["trainer"]["learning_rate_scheduler"]["type"] == expected
    assert not check_config(Config(raw, "old.jsonnet", "")).problems


@pytest.mark.parametrize("optimizer", [None, "adam", {"type": "dense_sparse_adam", "lr": 0.01}])
def test_noam_is_the_rate_itself(optimizer: Any) -> None:
    components.load()
    scheduler = {"type": "noam", "model_size": 16, "warmup_steps": 10}
    trainer = {"optimizer": optimizer, "learning_rate_scheduler": scheduler}
    translated = translation("esim", {"trainer": trainer})
    assert translated.raw["trainer"]["optimizer"] == {"type": "adam", "lr": 1.0}
    assert "noam is the rate itself" in translated.summary
    assert not check_config(Config(translated.raw, "old.jsonnet", "")).problems


def test_rate_of_a_group_is_refused_with_noam() -> None:
    scheduler = {"type": "noam", "model_size": 16, "warmup_steps": 10}
    groups = [[["_encoder"], {"lr": 0.1}], [["_output"], {"weight_decay": 0.1}]]
    changes = {
        "trainer.optimizer": {"type": "adam", "parameter_groups": groups},
        "trainer.learning_rate_scheduler": scheduler,
    }
    (problem,) = problems("esim", changes)
    assert problem.path == "trainer.optimizer.parameter_groups[0].lr"
    assert problem.message == "has no effect with noam in AllenNLP; remove it"


@pytest.mark.parametrize("group", [["a"], {"a": 1}, [["_encoder"], 5]])
def test_malformed_groups_are_problems_with_noam_too(group: Any) -> None:
    changes = {
        "trainer.optimizer": {"type": "adam", "parameter_groups": [group]},
        "trainer.learning_rate_scheduler": {"type": "noam", "model_size": 16, "warmup_steps": 10},
    }
    (problem,) = problems("esim", changes)
    assert problem.path == "trainer.optimizer.parameter_groups[0]"


@pytest.mark.parametrize("name", sorted(OPTIMIZERS))
def test_each_optimizer_has_its_counterpart(name: str) -> None:
    components.load()
    raw = ours("esim", {"trainer.optimizer": {"type": name, "lr": 0.01}})
    assert raw["trainer"]["optimizer"]["lr"] == 0.01
    assert not check_config(Config(raw, "old.jsonnet", "")).problems


@pytest.mark.parametrize(
    ("metric", "mode", "is_accepted"),
    [
        ("+accuracy", "max", True),
        ("+accuracy", "min", False),
        ("-loss", "min", True),
        ("-loss", "max", True),
        (["+accuracy"], "max", True),
        ("-loss", "maximum", False),
    ],
)
def test_mode_of_plateaus_is_that_of_the_metric(metric: Any, mode: str, is_accepted: bool) -> None:
    scheduler = {"type": "reduce_on_plateau", "mode": mode}
    changes = {"trainer": {"validation_metric": metric, "learning_rate_scheduler": scheduler}}
    if is_accepted:
        expected = {"type": "reduce_on_plateau"}
        assert ours("esim", changes)["trainer"]["learning_rate_scheduler"] == expected
    else:
        (problem,) = problems("esim", changes)
        assert problem.path == "trainer.learning_rate_scheduler.mode"


def test_rising_loss_with_an_iterator_is_refused() -> None:
    scheduler = {"type": "reduce_on_plateau", "mode": "max"}
    changes = {"trainer": {"learning_rate_scheduler": scheduler}}
    (problem,) = problems("crf_tagger", changes)
    assert problem.path == "trainer.learning_rate_scheduler.mode"


def test_plateaus_without_a_mode_differ_for_a_rising_score() -> None:
    trainer = {"validation_metric": "+accuracy", "learning_rate_scheduler": "reduce_on_plateau"}
    assert "AllenNLP's mode is 'min'" in translation("esim", {"trainer": trainer}).summary
    trainer["validation_metric"] = "-loss"
    assert "AllenNLP's mode is 'min'" not in translation("esim", {"trainer": trainer}).summary


def test_feedforward_of_a_crf_tagger_is_kept() -> None:
    layers = {"input_dim": 10, "num_layers": 1, "hidden_dims": 4, "activations": "relu"}
    changes = {
        "model.feedforward": layers,
        "model.initializer": [["_feedforward.*weight", "zero"]],
    }
    model = ours("crf_tagger", changes)["model"]
    assert model["feedforward"] == layers
    assert model["initializer"][-1] == [
        r"^feedforward\.linear_layers\.\d+\.weight$",
        {"type": "zero"},
    ]


def test_names_before_version_1_are_translated() -> None:
    applied = [
        ["_mention_pruner._scorer.1._module.weight", "zero"],
        ["_mention_pruner._scorer.0.*linear_layers.0.bias", "zero"],
    ]
    written = ours("coref", {"model.initializer": applied})["model"]["initializer"]
    assert [rule[0] for rule in written[1:]] == [
        r"^mentions\.score\.weight$",
        r"^mentions\.feedforward\.linear_layers\.0\.bias$",
    ]
    applied = [["_similarity_function._weight_vector", "zero"]]
    *_, rule = ours("bidaf", {"model.initializer": applied})["model"]["initializer"]
    assert rule[0] == r"^attention\.score\.weight$"


_BILINEAR = {"type": "bilinear", "matrix_1_dim": 10, "matrix_2_dim": 10}


@pytest.mark.parametrize(
    ("theirs", "expected"),
    [
        ("cosine", {"type": "cosine"}),
        ({"type": "dot_product"}, {"type": "dot_product"}),
        ({**_BILINEAR, "label_dim": 1}, _BILINEAR),
        (
            {"type": "linear", "tensor_1_dim": 10, "tensor_2_dim": 10},
            {"type": "linear", "combination": "x,y", "tensor_1_dim": 10, "tensor_2_dim": 10},
        ),
    ],
)
@pytest.mark.parametrize("name", ["bidaf", "esim"])
def test_matrix_attentions_are_translated(name: str, theirs: Any, expected: Any) -> None:
    changes = {"model.matrix_attention": theirs, "model.similarity_function": None}
    raw = ours(name, changes)
    assert raw["model"]["matrix_attention"] == expected
    assert named_parameters(raw) == {own for _, own in names(raw["model"]) if own}


@pytest.mark.parametrize(
    "changes",
    [
        {"use_input_biases": True},
        {"label_dim": 2},
        {"activation": "tanh"},
        {"type": "legacy"},
    ],
)
def test_other_matrix_attentions_are_refused(changes: Any) -> None:
    listed = problems("bidaf", {"model.matrix_attention": {**_BILINEAR, **changes}})
    assert listed[0].path == f"model.matrix_attention.{next(iter(changes))}"


def test_two_keys_may_fill_one_block_but_not_one_value() -> None:
    trainer = {"num_serialized_models_to_keep": 3, "model_save_interval": 60, "cuda_device": -1}
    assert ours("esim", {"trainer": trainer})["trainer"]["checkpointer"] == {
        "keep_most_recent_by_count": 3,
        "save_every": {"minutes": 1.0},
    }
    reader = {"type": "conll2003", "coding_scheme": "BIOUL", "convert_to_coding_scheme": "BIO"}
    reader["token_indexers"] = config("crf_tagger")["dataset_reader"]["token_indexers"]
    (problem,) = problems("crf_tagger", {"dataset_reader": reader})
    assert "another key becomes 'coding_scheme' too" in problem.message


def test_evaluate_on_test_is_kept_and_all_data_is_counted() -> None:
    raw = ours("esim", {"evaluate_on_test": True, "test_data_path": "test.jsonl"})
    assert raw["evaluate_on_test"] is True
    assert raw["datasets_for_vocab_creation"] == ["train", "validation", "test"]
    raw = ours("esim", {"datasets_for_vocab_creation": ["train"]})
    assert raw["datasets_for_vocab_creation"] == ["train"]


def test_several_processes_are_started_by_torchrun() -> None:
    translated = translation("esim", {"distributed": {"cuda_devices": [0, 1, 2]}})
    assert "distributed" not in translated.raw
    assert "torchrun --nproc-per-node 3" in translated.summary


def test_sharded_weights_and_sums_of_scores_are_refused() -> None:
    accelerator = {"type": "fairscale_fsdp"}
    block = {"cuda_devices": [0, 1], "ddp_accelerator": accelerator}
    (problem,) = problems("esim", {"distributed": block})
    assert "only 'torch' has, with torchrun" in problem.message
    (problem,) = problems("esim", {"trainer.validation_metric": ["+accuracy", "-loss"]})
    assert problem.message == "a sum of scores has no counterpart here; name one"


def test_vocabulary_limits_have_our_names() -> None:
    raw = ours("esim", {"vocabulary": {"min_count": {"tokens": 2}, "max_vocab_size": 9}})
    limits = {"labels": 9, "words": 9}
    assert raw["vocabulary"] == {"min_count": {"words": 2}, "max_vocab_size": limits}
    raw = ours("crf_tagger", {"vocabulary": {"min_count": {"token_characters": 2, "labels": 3}}})
    assert raw["vocabulary"] == {"min_count": {"characters": 2, "labels": 3}}
    changes = {_CHARACTERS: {"type": "characters", "namespace": "spelling"}}
    raw = ours("crf_tagger", {**changes, "vocabulary": {"min_count": {"spelling": 2}}})
    assert raw["vocabulary"] == {"min_count": {"characters": 2}}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("min_count", 2),
        ("max_vocab_size", 9),
        ("tokens_to_add", ["a"]),
        ("pretrained_files", "glove.txt"),
        ("min_pretrained_embeddings", 5),
    ],
)
def test_a_namespace_that_nothing_counts_is_dropped(key: str, value: Any) -> None:
    translated = translation("esim", {"vocabulary": {key: {"source_tokens": value}}})
    assert "vocabulary" not in translated.raw
    row = rf"vocabulary\.{key}\.source_tokens +dropped  no part of this config counts this"
    assert re.search(row, translated.summary)


def test_an_empty_limit_is_dropped() -> None:
    translated = translation("esim", {"vocabulary": {"tokens_to_add": {}}})
    assert "vocabulary" not in translated.raw
    assert re.search(r"vocabulary\.tokens_to_add +dropped  it is empty", translated.summary)


def test_bytes_are_not_counted() -> None:
    spelled = {"byte_encoding": "utf-8", "start_tokens": [259], "end_tokens": [260]}
    changes = {_CHARACTERS: {"type": "characters", "character_tokenizer": spelled}}
    limits = {"vocabulary": {"min_count": {"token_characters": 2, "tokens": 3}}}
    raw = ours("crf_tagger", {**changes, **limits})
    assert raw["vocabulary"] == {"min_count": {"words": 3}}


def test_what_has_no_counterpart_is_refused_for_a_counted_namespace() -> None:
    added = {"tokens_to_add": {"tokens": ["a"], "source_tokens": ["b"]}}
    (problem,) = problems("esim", {"vocabulary": added})
    assert problem.path == "vocabulary.tokens_to_add"


def test_crf_is_constrained_where_the_scheme_is_stated() -> None:
    assert ours("crf_tagger", {"model.constrain_crf_decoding": None})["model"][
        "constrain_transitions"
    ]
    changes = {"model.constrain_crf_decoding": None, "model.label_encoding": None}
    assert ours("crf_tagger", changes)["model"]["constrain_transitions"] is False


def test_labels_of_scheme_iob1_stay_as_they_are() -> None:
    reader = ours("crf_tagger", {"dataset_reader.coding_scheme": "IOB1"})["dataset_reader"]
    assert "coding_scheme" not in reader


@pytest.mark.parametrize(
    ("theirs", "expected"),
    [
        ({"word_splitter": {"type": "just_spaces"}}, "whitespace"),
        ({"type": "word"}, "spacy"),
        ({"type": "spacy", "language": "de_core_news_sm"}, {"type": "spacy", "language": "de"}),
    ],
)
def test_tokenizers_of_all_versions_are_translated(theirs: Any, expected: Any) -> None:
    found = ours("esim", {"dataset_reader.tokenizer": theirs})["dataset_reader"]["tokenizer"]
    assert found == expected or found == {"type": expected}


def test_reader_of_shards_is_its_base_reader() -> None:
    base = config("esim")["dataset_reader"]
    expected = ours("esim")["dataset_reader"]
    sharded = {"type": "sharded", "base_reader": base}
    assert ours("esim", {"dataset_reader": sharded})["dataset_reader"] == expected
    before = {"type": "multiprocess", "base_reader": base, "num_workers": 2, "epochs_per_read": 1}
    assert ours("esim", {"dataset_reader": before})["dataset_reader"] == expected


@pytest.mark.parametrize(
    ("theirs", "inner"),
    [
        ({"end_tokens": ["@@NULL@@"]}, "spacy"),
        ({"type": "spacy", "language": "de", "end_tokens": ["@@NULL@@"]}, {"language": "de"}),
        (
            {"type": "word", "word_splitter": "just_spaces", "end_tokens": ["@@NULL@@"]},
            "whitespace",
        ),
    ],
)
def test_words_that_a_tokenizer_adds_are_added(theirs: Any, inner: Any) -> None:
    tokenizer = ours("esim", {"dataset_reader.tokenizer": theirs})["dataset_reader"]["tokenizer"]
    inner = {"type": "spacy", **inner} if isinstance(inner, dict) else inner
    assert tokenizer == {"type": "add_tokens", "tokenizer": inner, "end_tokens": ["@@NULL@@"]}


def test_no_words_are_added_to_passages() -> None:
    tokenizer = {"type": "spacy", "end_tokens": ["@@NULL@@"]}
    (problem,) = problems("bidaf", {"dataset_reader.tokenizer": tokenizer})
    assert problem.path == "dataset_reader.tokenizer"


def test_projection_of_words_is_kept_with_its_name() -> None:
    changes = {
        "model.text_field_embedder.token_embedders.tokens": {**WORDS, "projection_dim": 6},
        "model.initializer": [["token_embedder_tokens\\._projection.*weight", "zero"]],
    }
    model = ours("esim", changes)["model"]
    assert model["embedder"]["token_embedders"]["tokens"]["projection_dim"] == 6
    assert model["initializer"][-1][0] == (
        r"^embedder\.token_embedders\.tokens\.projection\.weight$"
    )


@pytest.mark.parametrize(
    "host",
    [
        "allennlp.s3.amazonaws.com",
        "s3-us-west-2.amazonaws.com/allennlp",
    ],
)
def test_published_files_become_the_name_of_a_bilm(host: str) -> None:
    start = f"https://{host}/models/elmo/2x1024_128_2048cnn_1xhighway/elmo_"
    where = "model.text_field_embedder.token_embedders.elmo"
    changes = {
        f"{where}.options_file": f"{start}2x1024_128_2048cnn_1xhighway_options.json",
        f"{where}.weight_file": f"{start}2x1024_128_2048cnn_1xhighway_weights.hdf5",
    }
    elmo = ours("crf_tagger", changes)["model"]["embedder"]["token_embedders"]["elmo"]
    assert elmo["bilm"] == "small"
    changes[f"{where}.options_file"] = "https://example.org/options.json"
    assert problems("crf_tagger", changes)[0].path == f"{where}.options_file"


def test_text_of_a_translation_is_the_translation(tmp_path: Path) -> None:
    translated = translation("bcn")
    path = tmp_path / "new.jsonnet"
    path.write_text(translated.text)
    assert Config.load(path).raw == translated.raw


def test_overrides_and_variables_are_those_of_the_old_config(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, output = tmp_path / "old.jsonnet", tmp_path / "new.jsonnet"
    path.write_text(
        json.dumps(config("crf_tagger")) + " + { train_data_path: std.extVar('TRAIN') }"
    )
    words = [str(path), "--ext-var", "TRAIN=a.txt", "-o", "iterator.batch_size=7"]
    assert main(["convert", *words, "--output-file", str(output)]) == 0
    raw = Config.load(output).raw
    assert raw["train_data_path"] == "a.txt"
    assert raw["data_loader"] == {"batch_size": 7}
    assert "datasets_for_vocab_creation" in capsys.readouterr().err
    assert main(["convert", str(output)]) == 2
    assert "not a config of AllenNLP" in capsys.readouterr().err


def test_convert_writes_nothing_if_a_value_is_wrong(tmp_path: Path) -> None:
    path, output = tmp_path / "old.jsonnet", tmp_path / "new.jsonnet"
    path.write_text(json.dumps(config("esim", {"trainer.num_epochs": "many"})))
    assert main(["convert", str(path), "--output-file", str(output)]) == 2
    assert not output.exists()


def test_run_of_an_old_config_keeps_its_translation(tmp_path: Path) -> None:
    path, run = tmp_path / "old.json", tmp_path / "run"
    path.write_text(json.dumps(config("basic_classifier")))
    assert main(["train", str(path), "-s", str(run)]) == 0
    assert Config.load(run / "translated.jsonnet").raw == json.loads(
        (run / "config.json").read_text()
    )
    data = config("basic_classifier")["validation_data_path"]
    assert main(["evaluate", str(run), data]) == 0


@pytest.mark.parametrize(
    ("values", "counted"),
    [
        ({"type": "from_files", "directory": "v"}, []),
        ({"directory_path": "v", "extend": False}, []),
        ({"directory_path": "v", "extend": True}, ["train", "validation"]),
        ({"type": "extend", "directory": "v"}, ["train", "validation"]),
    ],
)
def test_a_vocabulary_may_be_in_files(values: Any, counted: list[str]) -> None:
    raw = ours("esim", {"vocabulary": values})
    assert raw["vocabulary"] == {"directory": "v"}
    assert raw["datasets_for_vocab_creation"] == counted
    changes = {"vocabulary": values, "datasets_for_vocab_creation": ["train"]}
    assert ours("esim", changes)["datasets_for_vocab_creation"] == (counted and ["train"])


def test_files_of_pretrained_words_have_no_effect_without_min_count() -> None:
    files = {"pretrained_files": {"tokens": "glove.txt.gz"}}
    assert "vocabulary" not in ours("esim", {"vocabulary": files})
    assert "without min_count" in translation("esim", {"vocabulary": files}).summary
    labels = {**files, "min_count": {"labels": 2}}
    assert ours("esim", {"vocabulary": labels})["vocabulary"] == {"min_count": {"labels": 2}}
    for limits in ({"tokens": 2}, 2):
        listed = problems("esim", {"vocabulary": {**files, "min_count": limits}})
        assert [each.path for each in listed] == ["vocabulary.pretrained_files"]
    (problem,) = problems("esim", {"vocabulary": {**files, "only_include_pretrained_words": True}})
    assert problem.path == "vocabulary.only_include_pretrained_words"


def test_a_vocabulary_of_files_needs_a_folder() -> None:
    (problem,) = problems("esim", {"vocabulary": {"type": "from_files"}})
    assert (problem.path, problem.message) == ("vocabulary", "directory is missing")


def test_entities_of_ontonotes_have_a_reader() -> None:
    reader = {"type": "ontonotes_ner", "coding_scheme": "BIOUL", "token_indexers": {}}
    changes = {"dataset_reader": {**CONFIGS["crf_tagger"]["dataset_reader"], **reader}}
    changes["dataset_reader"].pop("tag_label")
    changes["dataset_reader"]["token_indexers"] = CONFIGS["crf_tagger"]["dataset_reader"][
        "token_indexers"
    ]
    expected = {"type": "ontonotes_ner", "coding_scheme": "BIOUL"}
    assert ours("crf_tagger", changes)["dataset_reader"] == expected
    changes["dataset_reader"]["domain_identifier"] = "nw"
    (problem,) = problems("crf_tagger", changes)
    assert "use a pattern of files" in problem.message


@pytest.mark.parametrize(
    ("changes", "advice"),
    [
        ({"model.type": "srl_bert"}, "use 'srl' with pretrained_transformer_mismatched"),
        ({"dataset_reader.token_indexers.elmo.type": "pretrained_transformer"}, "_mismatched"),
        ({"dataset_reader.token_indexers.elmo.type": "bert-pretrained"}, "_mismatched"),
        ({"model.type": "biaffine_parser"}, "plugins/ud_parser"),
    ],
)
def test_refused_types_name_what_to_use(changes: dict[str, Any], advice: str) -> None:
    first, *_ = problems("crf_tagger", changes)
    assert "has no counterpart here; " in first.message
    assert advice in first.message


def test_each_type_of_vocabulary_has_its_reason() -> None:
    for kind, reason in (("from_instances", "counted"), ("extend", "added")):
        values = {"type": kind, **({"directory": "v"} if kind == "extend" else {})}
        summary = translation("esim", {"vocabulary": values}).summary
        assert re.search(rf"vocabulary\.type +dropped .*{reason}", summary)
    (problem,) = problems("esim", {"vocabulary": {"type": "empty"}})
    assert "AllenNLP's Vocabulary 'empty' has no counterpart here" in problem.message


def test_rare_words_keep_their_frozen_vectors() -> None:
    words = {**WORDS, "pretrained_file": "glove.txt", "trainable": False}
    path = "model.text_field_embedder.token_embedders"
    options = {"pretrained_files": {"tokens": "glove.txt"}, "min_count": {"tokens": 2}}
    translated = translation("esim", {"vocabulary": options, path: {"tokens": words}})
    embedder = translated.raw["model"]["embedder"]["token_embedders"]["tokens"]
    assert embedder["max_unseen_words"] is None
    assert translated.raw["vocabulary"] == {"min_count": {"words": 2}}
    assert "words of the file that the data lacks have their vectors too" in translated.summary
    for other in ({"trainable": True}, {"pretrained_file": "others.txt"}):
        changes = {"vocabulary": options, path: {"tokens": {**words, **other}}}
        (problem,) = problems("esim", changes)
        assert problem.path == "vocabulary.pretrained_files"
        assert "trainable: false" in problem.message


@pytest.mark.parametrize("name", ["srl", "bidaf"])
def test_initial_weights_are_those_of_allennlp(name: str) -> None:
    rules = dict(ours(name, {"model.initializer": []})["model"]["initializer"])
    linear, layer = {"type": "kaiming_uniform", "a": 5**0.5}, r"highway\.layers\.\d+"
    expected: dict[str, Any] = {
        "srl": {r"^projection\.weight$": linear},
        "bidaf": {
            rf"^({layer}\.carry\.weight|{layer}\.transform\.weight)$": linear,
            r"^highway\.layers\.\d+\.carry\.bias$": {"type": "constant", "val": -1.0},
        },
    }[name]
    assert expected.items() <= rules.items()
    stated = {"srl": "tag_projection_layer.*weight", "bidaf": "_highway_layer"}[name]
    stated_rules = ours(name, {"model.initializer": [[stated, "zero"]]})["model"]["initializer"]
    assert linear not in [applied for _, applied in stated_rules]


def test_what_allennlp_always_does_in_srl_is_a_key_here() -> None:
    implied = {
        "decoding": "probabilities",
        "predicate_words": "tagged",
        "loss_reduction": "mean",
    }
    assert implied.items() <= ours("srl")["model"].items()
    rate = "model.encoder.recurrent_dropout_probability"
    places = [
        ours("srl", {rate: each})["model"]["encoder"].get("recurrent_dropout_place")
        for each in (0.1, 0.0)
    ]
    assert places == ["recurrence", None]


def test_initial_biases_that_differ_have_a_row() -> None:
    text = "biases of the transformed vectors of highway layers start at zero"
    assert text in translation("bidaf").summary
    assert text not in translation("bidaf", {"model.initializer": [["bias", "zero"]]}).summary
    text = "biases of the inputs of an alternating_lstm start at zero"
    assert text in translation("simple_tagger").summary
    assert text not in translation("srl").summary  # its encoder has one bias in AllenNLP too
    stated = {"model.initializer": [[".*linearity.bias", "zero"]]}
    assert text not in translation("simple_tagger", stated).summary


def test_lstms_that_read_padding_differ_in_effect() -> None:
    summary = translation("bidaf", {"model.mask_lstms": False}).summary
    assert re.search(r"model\.mask_lstms +differs", summary)
    summary = translation("bidaf", {"model.mask_lstms": True}).summary
    assert re.search(r"model\.mask_lstms +dropped", summary)


def test_form_of_gradients_of_characters_is_dropped() -> None:
    where = "model.text_field_embedder.token_embedders.token_characters.embedding"
    changes = {where: {"embedding_dim": 4, "sparse": True}}
    embedder = ours("crf_tagger", changes)["model"]["embedder"]["token_embedders"]
    assert embedder["token_characters"]["embedding"] == {"embedding_dim": 4}
