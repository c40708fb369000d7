"""bilm-tf's training options in place of our configuration."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from elmo_framework.config.load import Config
from elmo_framework.config.parse import parse
from elmo_framework.config.resolve import filled
from elmo_framework.errors import ElmoFrameworkError
from elmo_framework.experiment.experiment import Experiment

ROOT = Path(__file__).parents[4]

# As published with the model of the original size.
OPTIONS: dict[str, Any] = {
    "all_clip_norm_val": 10.0,
    "batch_size": 128,
    "bidirectional": True,
    "char_cnn": {
        "activation": "relu",
        "embedding": {"dim": 16},
        "filters": [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]],
        "max_characters_per_token": 50,
        "n_characters": 261,
        "n_highway": 2,
    },
    "dropout": 0.1,
    "lstm": {
        "cell_clip": 3,
        "dim": 4096,
        "n_layers": 2,
        "proj_clip": 3,
        "projection_dim": 512,
        "use_skip_connections": True,
    },
    "n_epochs": 10,
    "n_negative_samples_batch": 8192,
    "n_tokens_vocab": 793471,
    "n_train_tokens": 768648884,
    "unroll_steps": 20,
}


def evaluated(directory: Path, options: dict[str, Any]) -> dict[str, Any]:
    """Write a config that takes the options, and return it in its filled form."""
    (directory / "options.json").write_text(json.dumps(options))
    config = directory / "config.jsonnet"
    config.write_text(
        f"local bilm_tf = import '{ROOT}/experiments/lib/bilm_tf.libsonnet';\n"
        "bilm_tf.pretraining(import 'options.json') + {\n"
        "  dataset_reader: 'language_modeling', train_data_path: 'x', validation_data_path: 'x',\n"
        "}\n"
    )
    return filled(parse(Experiment, Config.load(config).raw, source=str(config)))


def test_the_published_options_are_our_original_config(tmp_path: Path) -> None:
    theirs = evaluated(tmp_path, OPTIONS)
    original = ROOT / "experiments/pretrain/original.jsonnet"
    ours = filled(parse(Experiment, Config.load(original).raw, source="original"))
    assert theirs["model"] == {**ours["model"], "min_count": 1, "max_vocabulary_size": 793468}
    assert theirs["data_loader"] == {**ours["data_loader"], "num_train_tokens": 768648884}
    every_epoch = {**ours["trainer"]["evaluate_every"], "steps": None}
    assert theirs["trainer"] == {**ours["trainer"], "evaluate_every": every_epoch}


def test_optional_keys_may_be_missing(tmp_path: Path) -> None:
    lstm = {"dim": 64, "projection_dim": 16}
    characters = {**OPTIONS["char_cnn"]}
    del characters["n_highway"], characters["activation"]
    options = {**OPTIONS, "lstm": lstm, "char_cnn": characters, "sample_softmax": False}
    for key in ("dropout", "n_tokens_vocab", "all_clip_norm_val", "bidirectional"):
        del options[key]
    found = evaluated(tmp_path, {**options, "learning_rate": 0.1})
    layers = found["model"]["context_layers"]
    assert (layers["num_layers"], layers["cell_clip"], layers["dropout"]) == (1, None, 0.0)
    assert found["model"]["num_samples"] is None
    assert found["trainer"]["optimizer"]["lr"] == 0.1


@pytest.mark.parametrize(("last", "projection_dim"), [(32, None), (33, 512)])
def test_no_projection_if_filters_match_the_lstm_input(
    tmp_path: Path, last: int, projection_dim: int | None
) -> None:
    filters = [[1, 32], [2, 32], [3, 64], [4, 128], [5, 224], [6, last]]
    characters = {**OPTIONS["char_cnn"], "filters": filters}
    found = evaluated(tmp_path, {**OPTIONS, "char_cnn": characters})
    assert found["model"]["token_encoder"]["projection_dim"] == projection_dim


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bidirectional": False}, "'bidirectional' is false"),
        ({"share_embedding_softmax": True}, "'share_embedding_softmax' is true"),
    ],
)
def test_untrainable_options_are_refused(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ElmoFrameworkError, match=message):
        evaluated(tmp_path, {**OPTIONS, **changes})


def test_a_model_of_whole_words_is_refused(tmp_path: Path) -> None:
    options = {key: value for key, value in OPTIONS.items() if key != "char_cnn"}
    with pytest.raises(ElmoFrameworkError, match="the options have no 'char_cnn'"):
        evaluated(tmp_path, options)
