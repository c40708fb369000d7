"""Decomposable attention, from its equations to its configs of AllenNLP."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from elmo_framework import components, load
from elmo_framework.commands.main import main
from elmo_framework.compat.allennlp.archive import import_archive
from elmo_framework.compat.allennlp.export import export_allennlp
from elmo_framework.compat.allennlp.parameter_names import names
from elmo_framework.compat.allennlp.translate import translate_allennlp
from elmo_framework.config.load import Config
from elmo_framework.config.parse import parse
from elmo_framework.data.tokenizer import WhitespaceTokenizer
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.errors import BuildError, ConfigError, Problem
from elmo_framework.experiment.check import check_config
from elmo_framework.model.model import Model
from elmo_framework.tasks.entailment.reader import SnliReader
from elmo_framework.tasks.entailment.task import EntailmentTask
from tests.experiment.task_check import check_task
from tests.plugin_scope import without_plugins
from tests.unit.compat.configs import FIXTURES
from tests.unit.compat.test_archive import ARCHIVES, DATA, EXPECTED, check_label, outputs
from tests.unit.compat.test_export import check_equal
from tests.unit.tasks.classifiers import (
    batch_of,
    check_a_batch_equals_its_rows,
    check_gradients,
    check_learning,
)

PAIRS = FIXTURES / "snli/pairs.jsonl"
EXAMPLES = list(SnliReader(WhitespaceTokenizer(), {}).read(PAIRS))
COUNTS = Vocabularies(EntailmentTask().count(EXAMPLES))
LSTM = {"type": "lstm", "hidden_size": 6, "bidirectional": True}
LAYERS = {"num_layers": 2, "hidden_dims": [7, 5], "activations": ["tanh", "relu"]}
MODEL: dict[str, Any] = {
    "type": "decomposable_attention",
    "embedder": {"token_embedders": {"tokens": {"type": "embedding", "embedding_dim": 8}}},
    "attend_feedforward": LAYERS,
    "compare_feedforward": LAYERS,
    "aggregate_feedforward": LAYERS,
}
ENCODED = {**MODEL, "premise_encoder": LSTM, "hypothesis_encoder": LSTM}
EACH = pytest.mark.parametrize("config", [MODEL, ENCODED], ids=["plain", "encoders"])
CONFIGS = "plugins/allennlp_heads"
SMALL: dict[str, Any] = {
    "dataset_reader.tokenizer": "whitespace",
    "train_data_path": str(PAIRS),
    "validation_data_path": str(PAIRS),
    "model.embedder.token_embedders.tokens.embedding_dim": 16,
    "model.attend_feedforward.hidden_dims": 16,
    "model.compare_feedforward.hidden_dims": 16,
    "model.aggregate_feedforward.hidden_dims": 16,
    "trainer.num_epochs": 10,
    "trainer.patience": None,
}
INPUTS = [{"premise": "Two boys kick a ball .", "hypothesis": "Children play ."}]


def _theirs(input_dim: int, *hidden_dims: int, last: str = "relu") -> dict[str, Any]:
    number = len(hidden_dims)
    return {
        "input_dim": input_dim,
        "num_layers": number,
        "hidden_dims": [*hidden_dims],
        "activations": ["relu"] * (number - 1) + [last],
        "dropout": [0.2] * (number - 1) + [0.0],
    }


OLD: dict[str, Any] = {
    "dataset_reader": {
        "type": "snli",
        "tokenizer": "just_spaces",
        "token_indexers": {"tokens": {"type": "single_id", "lowercase_tokens": True}},
    },
    "train_data_path": str(PAIRS),
    "validation_data_path": str(PAIRS),
    "model": {
        "type": "decomposable_attention",
        "text_field_embedder": {"tokens": {"type": "embedding", "embedding_dim": 6}},
        "attend_feedforward": _theirs(10, 7, 7),
        "similarity_function": {"type": "dot_product"},
        "compare_feedforward": _theirs(20, 7, 5),
        "aggregate_feedforward": _theirs(10, 7, 3, last="linear"),
        "premise_encoder": {
            "type": "lstm",
            "input_size": 6,
            "hidden_size": 5,
            "bidirectional": True,
        },
        "initializer": [["_aggregate_feedforward.*weight", {"type": "xavier_normal"}]],
    },
    "iterator": {"type": "basic", "batch_size": 4},
    "trainer": {"num_epochs": 1, "cuda_device": -1, "optimizer": {"type": "adagrad"}},
}


def _model(config: Mapping[str, Any]) -> Any:
    torch.manual_seed(1)
    return parse(Model, dict(config), source="a.jsonnet").build(vocabularies=COUNTS)


def _with(changes: Mapping[str, Any]) -> dict[str, Any]:
    return {**OLD, "model": {**OLD["model"], **changes}}


def _ours(raw: Mapping[str, Any] = OLD) -> dict[str, Any]:
    translation = translate_allennlp(raw, "old.jsonnet")
    assert translation is not None
    return translation.raw


def _problem(raw: Mapping[str, Any]) -> Problem:
    with pytest.raises(ConfigError) as caught:
        _ours(raw)
    (problem,) = caught.value.problems
    return problem


@EACH
def test_a_batch_equals_its_pairs_one_by_one(config: dict[str, Any]) -> None:
    check_a_batch_equals_its_rows(_model(config), COUNTS, EXAMPLES)


@EACH
def test_gradients_reach_every_parameter(config: dict[str, Any]) -> None:
    check_gradients(_model(config), COUNTS, EXAMPLES)


@EACH
def test_model_fits_its_training_data(config: dict[str, Any]) -> None:
    # Wide enough that no unit that starts at zero prevents it.
    wide = {"num_layers": 1, "hidden_dims": 32, "activations": "relu"}
    places = ("attend_feedforward", "compare_feedforward", "aggregate_feedforward")
    check_learning(_model({**config, **dict.fromkeys(places, wide)}), COUNTS, EXAMPLES)


def _network(network: Any, inputs: Any) -> Any:
    for linear, activation in zip(
        network.linear_layers, (np.tanh, lambda x: np.maximum(x, 0)), strict=True
    ):
        weight, bias = (each.detach().numpy() for each in (linear.weight, linear.bias))
        inputs = activation(weight @ inputs + bias)
    return inputs


def test_logits_are_those_of_the_equations_pair_by_pair() -> None:
    model = _model(MODEL).eval()
    for example in EXAMPLES[:3]:
        batch = batch_of(model, COUNTS, [example])
        both = model.embedder(batch.text).detach().numpy()
        lengths = len(example.premise), len(example.hypothesis)
        first, second = (rows[:length] for rows, length in zip(both, lengths, strict=True))
        totals = []
        for words, others in ((first, second), (second, first)):
            total = np.zeros(5)
            for word in words:
                attended = _network(model.attend_feedforward, word)
                scores = [attended @ _network(model.attend_feedforward, each) for each in others]
                weights = np.exp(scores) / np.exp(scores).sum()
                aligned = sum(w * each for w, each in zip(weights, others, strict=True))
                total += _network(model.compare_feedforward, np.concatenate([word, aligned]))
            totals.append(total)
        hidden = _network(model.aggregate_feedforward, np.concatenate(totals))
        last = model.output_logit
        expected = last.weight.detach().numpy() @ hidden + last.bias.detach().numpy()
        np.testing.assert_allclose(model.logits(batch)[0].detach(), expected, atol=1e-5)


def test_encoder_of_the_premise_is_shared_by_default() -> None:
    model = _model({**MODEL, "premise_encoder": LSTM})
    same, other = EXAMPLES[0].premise, EXAMPLES[0]
    pair = type(other)(same, same, other.label)
    calls: list[torch.Tensor] = []
    model.premise_encoder.register_forward_hook(lambda *each: calls.append(each[-1]))
    model.eval().logits(batch_of(model, COUNTS, [pair]))
    first, second = calls
    assert torch.equal(first, second)


def test_encoders_of_different_dimensions_are_refused() -> None:
    with pytest.raises(BuildError, match="dimension 8 and the hypothesis 12"):
        _model({**MODEL, "hypothesis_encoder": LSTM})


def test_baseline_trains_scores_and_predicts(tmp_path: Path) -> None:
    run = check_task(f"{CONFIGS}/baseline.jsonnet", tmp_path / "run", SMALL, inputs=INPUTS)
    assert run.evaluate(PAIRS)["accuracy"] > 0.5


def test_elmo_trains_scores_and_predicts(bilm: Path, tmp_path: Path) -> None:
    changes = {**SMALL, "model.embedder.token_embedders.elmo.cache": "none"}
    check_task(f"{CONFIGS}/elmo.jsonnet", tmp_path / "run", changes, inputs=INPUTS, bilm=bilm)


def test_translated_config_has_no_problems() -> None:
    components.load()
    assert not check_config(Config(_ours(), "old.jsonnet", "")).problems


def test_layer_of_the_labels_is_left_out() -> None:
    assert _ours()["model"]["aggregate_feedforward"] == {
        "num_layers": 1,
        "hidden_dims": [7],
        "activations": ["relu"],
        "dropout": [0.2],
    }


def test_each_parameter_has_a_name_in_allennlp() -> None:
    raw = _ours()["model"]
    named = {ours for _, ours in names(raw) if ours}
    assert named == {name for name, _ in _model(raw).named_parameters()}
    assert dict(raw["initializer"]).keys() == {
        r"^(aggregate_feedforward\.linear_layers\.\d+\.weight|output_logit\.weight)$",
        r"^embedder\.token_embedders\.tokens\.embedding\.weight$",
    }


def test_matrix_attention_scores_the_pairs() -> None:
    weight = {"type": "bilinear", "matrix_1_dim": 7, "matrix_2_dim": 7}
    model = _model(_ours(_with({"similarity_function": weight}))["model"])
    assert model.matrix_attention.weight.shape == (7, 7)
    problem = _problem(_with({"similarity_function": {"type": "multi_headed"}}))
    assert problem.path == "model.similarity_function.type"


def test_maxout_as_last_network_is_refused() -> None:
    maxout = {"input_dim": 10, "num_layers": 2, "output_dims": [7, 3], "pool_sizes": 2}
    problem = _problem(_with({"aggregate_feedforward": maxout}))
    assert problem.path == "model.aggregate_feedforward"


def test_without_the_plugin_the_error_says_what_to_install() -> None:
    with without_plugins("plugins", "allennlp_heads"):
        from elmo_framework.compat.allennlp import models

        del models.MODELS["decomposable_attention"]
        problem = _problem(OLD)
    assert problem.path == "model.type"
    assert problem.message.endswith("needs a plugin; pip install ./plugins/allennlp_heads")


def test_commands_load_the_plugin_before_they_translate(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    old = tmp_path / "old.json"
    old.write_text(json.dumps(OLD))
    with without_plugins("plugins", "allennlp_heads"):
        from elmo_framework.compat.allennlp import models

        del models.MODELS["decomposable_attention"]
        assert main(["check", str(old)]) != 0
        assert "pip install ./plugins/allennlp_heads" in capfd.readouterr().err
        flags = ["--include-package", "plugins.allennlp_heads"]
        assert main(["check", str(old), *flags]) == 0


def test_imported_model_has_the_logits_of_allennlp(tmp_path: Path) -> None:
    archive, run = ARCHIVES / "decomposable_attention.tar.gz", tmp_path / "run"
    flags = ["--include-package", "plugins.allennlp_heads"]
    assert main(["import", str(archive), "-s", str(run), *flags]) == 0
    answers, expected = outputs(load(run), DATA / "snli.jsonl"), EXPECTED["decomposable_attention"]
    assert len(answers) == len(expected) == 9
    for (_, output, prediction), each in zip(answers, expected, strict=True):
        check_label(output, prediction, each)


def test_exported_model_is_imported_bit_for_bit(tmp_path: Path) -> None:
    first, second, archive = tmp_path / "a", tmp_path / "b", tmp_path / "model.tar.gz"
    import_archive(ARCHIVES / "decomposable_attention.tar.gz", first)
    export_allennlp(first, archive)
    import_archive(archive, second)
    check_equal(first, second, DATA / "snli.jsonl")
