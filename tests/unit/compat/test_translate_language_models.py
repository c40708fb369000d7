"""Language models of AllenNLP become biLMs, with all that differs in the table."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from elmo_framework import components
from elmo_framework.commands.main import main
from elmo_framework.compat.allennlp.translate import translate_allennlp
from elmo_framework.config.load import Config, Translation
from elmo_framework.errors import ConfigError
from elmo_framework.experiment.check import check_config
from tests.unit.compat.configs import config

LSTM = {"type": "lstm", "bidirectional": True, "input_size": 16, "hidden_size": 16}
STACKED = {
    "type": "stacked_bidirectional_lstm",
    "input_size": 16,
    "hidden_size": 16,
    "num_layers": 1,
    "use_highway": False,
}
PLAIN_LSTM = {
    "type": "elmo_lstm",
    "cell_size": 16,
    "num_layers": 1,
    "projection_dim": None,
    "cell_clip": None,
    "projection_clip": None,
    "use_skip_connections": False,
}
READER = "dataset_reader.base_reader"
EMBEDDERS = "model.text_field_embedder.token_embedders"
CNN = f"{EMBEDDERS}.token_characters.encoder"


def translation(changes: dict[str, Any] | None = None) -> Translation:
    translated = translate_allennlp(config("language_model", changes), "old.jsonnet")
    assert translated is not None
    return translated


def refused(changes: dict[str, Any]) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        translation(changes)
    return [problem.path for problem in caught.value.problems]


def differing(text: str) -> set[str]:
    return set(re.findall(r"^(\S+) +differs ", text, re.MULTILINE))


def test_transformer_is_a_bilm_of_the_same_sizes() -> None:
    raw = translation().raw
    assert raw["model"] == {
        "type": "bilm",
        "num_samples": 5,
        "dropout": 0.1,
        "token_encoder": {
            "type": "char_cnn",
            "embedding_dim": 4,
            "filters": [[1, 3], [2, 5]],
            "num_highway": 1,
            "projection_dim": 16,
            "activation": "relu",
            "layer_norm": True,
        },
        "context_layers": {
            "type": "transformer",
            "num_heads": 8,
            "head_dim": 2,
            "feedforward_dim": 24,
            "num_layers": 2,
            "dropout": 0.1,
        },
    }
    assert raw["dataset_reader"] == {
        "type": "language_modeling",
        "tokenizer": {"type": "whitespace"},
    } or raw["dataset_reader"] == {"type": "language_modeling", "tokenizer": "whitespace"}
    assert "vocabulary" not in raw or raw["vocabulary"] == {}


def test_what_differs_in_effect_is_in_the_table() -> None:
    assert differing(translation().summary) == {
        f"{READER}.max_sequence_length",
        "model",
        "model.contextualizer",
        "model.contextualizer.input_dropout",
        f"{CNN}.do_layer_norm",
        "data_loader",
    }


def test_windows_are_neither_sorted_nor_padded() -> None:
    bucket = {"sorting_keys": ["source"], "padding_noise": 0.2}
    old = {
        "type": "bucket",
        "maximum_samples_per_batch": ["num_tokens", 90],
        "batch_size": 9,
        **bucket,
    }
    iterator = translation({"iterator": old, "data_loader": None}).summary
    sampler = {"type": "max_tokens_sampler", "max_tokens": 90, **bucket}
    loader = translation({"data_loader": {"batch_sampler": sampler}}).summary
    for summary, path in ((iterator, "iterator"), (loader, "data_loader.batch_sampler")):
        assert differing(summary) & {f"{path}.{key}" for key in bucket} == set()
        for key in bucket:
            assert re.search(rf"^{path}.{key} +dropped +windows of", summary, re.MULTILINE)
        assert "bucketing" not in summary
    assert re.search("^iterator.maximum_samples_per_batch +becomes +batch_size$", iterator, re.M)
    assert "4 rows of 20 words (unroll_steps) in place of 9 sentences and 90 words" in iterator
    assert "in place of 90 words" in loader


@pytest.mark.parametrize("layers", [LSTM, {**LSTM, "num_layers": 1, "dropout": 0.2}, STACKED])
def test_one_lstm_layer_is_one_without_projection_and_clips(layers: Any) -> None:
    raw = translation({"model.contextualizer": layers}).raw
    assert raw["model"]["context_layers"] == PLAIN_LSTM


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"model.bidirectional": False}, "model.bidirectional"),
        ({"model.bidirectional": None}, "model.bidirectional"),
        (
            {"model.contextualizer": {**LSTM, "num_layers": 2}},
            "model.contextualizer.num_layers",
        ),
        (
            {"model.contextualizer": {**LSTM, "bidirectional": None}},
            "model.contextualizer.bidirectional",
        ),
        (
            {"model.contextualizer": {**STACKED, "use_highway": None}},
            "model.contextualizer.use_highway",
        ),
        ({"model.contextualizer.type": "gated-cnn-encoder"}, "model.contextualizer.type"),
        ({"model.contextualizer.input_dim": 24}, "model.contextualizer.input_dim"),
        ({f"{EMBEDDERS}.tokens": {"type": "embedding", "embedding_dim": 3}}, EMBEDDERS),
        ({f"{CNN}.type": "cnn"}, f"{CNN}.type"),
        ({f"{CNN}.projection_location": "after_cnn"}, f"{CNN}.projection_location"),
        (
            {f"{READER}.token_indexers.token_characters": "characters"},
            f"{EMBEDDERS}.token_characters",
        ),
        ({f"{READER}.start_tokens": ["<s>"]}, f"{READER}.start_tokens"),
        ({"vocabulary.tokens_to_add": {"tokens": ["a"]}}, "vocabulary.tokens_to_add"),
        ({"model.initializer": [["softmax", "zero"]]}, "model.initializer"),
        ({"trainer.no_grad": ["softmax"]}, "trainer.no_grad[0]"),
        (
            {"trainer.optimizer.parameter_groups": [[["softmax"], {"weight_decay": 0.1}]]},
            "trainer.optimizer.parameter_groups[0]",
        ),
    ],
)
def test_what_cannot_be_the_same_is_refused(changes: dict[str, Any], path: str) -> None:
    assert path in refused(changes)


def test_limits_of_other_namespaces_have_no_effect() -> None:
    # `source_tokens` is in configs that were copied from those of translation.
    limits = {"tokens": 3, "source_tokens": 3, "labels": 3}
    translated = translation({"vocabulary.min_count": limits})
    assert translated.raw["vocabulary"] == {"min_count": {"words": 3}}
    for name in ("source_tokens", "labels"):
        assert re.search(rf"vocabulary\.min_count\.{name} +dropped ", translated.summary)


@pytest.mark.parametrize(
    ("loader", "rows"),
    [
        ({"batch_size": 7, "shuffle": True}, 7),
        ({"batch_sampler": {"type": "max_tokens_sampler", "max_tokens": 90}}, 4),
        ({"batch_sampler": {"type": "max_tokens_sampler", "max_tokens": 9}}, 1),
    ],
)
def test_sentences_become_windows(loader: Any, rows: int) -> None:
    ours = translation({"data_loader": loader}).raw["data_loader"]
    assert ours == {"type": "windows", "unroll_steps": 20, "aligned": True, "batch_size": rows}


def test_order_of_sentences_differs_where_they_are_not_shuffled() -> None:
    changes = {"data_loader": {"batch_size": 7}}
    assert "data_loader.shuffle" in differing(translation(changes).summary)


def test_full_softmax_and_no_dropout_are_defaults() -> None:
    model = translation({"model.num_samples": None, "model.dropout": None}).raw["model"]
    assert (model["num_samples"], model["dropout"]) == (None, 0.0)


def test_sentences_are_tokenized_by_default() -> None:
    raw = translation({f"{READER}.tokenizer": None}).raw
    assert raw["dataset_reader"]["tokenizer"] == "spacy"


@pytest.mark.parametrize("layers", [None, LSTM])
def test_translated_config_has_no_problems(layers: Any) -> None:
    components.load()
    raw = translation({"model.contextualizer": layers} if layers else None).raw
    assert not check_config(Config(raw, "old.jsonnet", "")).problems


def test_an_old_language_model_is_trained(tmp_path: Path) -> None:
    path = tmp_path / "old.json"
    path.write_text(json.dumps(config("language_model")))
    assert main(["train", str(path), "-s", str(tmp_path / "run")]) == 0
    assert json.loads((tmp_path / "run/metrics.json").read_text())
