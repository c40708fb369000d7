from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import torch

from elmo_framework import components
from elmo_framework.config.parse import parse
from elmo_framework.experiment.assembly import Assembly
from elmo_framework.experiment.experiment import Experiment
from elmo_framework.experiment.metadata import digests_of_other_files, word_coverage
from elmo_framework.io.files import digest

components.load()


def measured(folder: Path, tokens: dict[str, Any], **keys: Any) -> dict[str, Any]:
    """Build a tagger on two small data sets, and measure its words."""
    (folder / "train.txt").write_text("the###A dog###B the###A\nran###C\n")
    (folder / "valid.txt").write_text("the###A cat###B owl###C\n")
    (folder / "test.txt").write_text("dog###A\n")
    (folder / "vectors.txt").write_text("the 1 2\ndog 3 4\ncat 5 6\n")
    config = {
        "dataset_reader": "sequence_tagging",
        **{f"{name}_data_path": str(folder / f"{name}.txt") for name in ("train", "test")},
        "validation_data_path": str(folder / "valid.txt"),
        "model": {
            "type": "simple_tagger",
            "embedder": {
                "token_embedders": {"tokens": {"type": "embedding", "embedding_dim": 2, **tokens}}
            },
        },
        **keys,
    }
    experiment = parse(Experiment, config, source="a.jsonnet").build()
    return word_coverage(Assembly.build(experiment, device=torch.device("cpu")))


def test_vector_coverage_is_measured_per_data_set(tmp_path, caplog):
    with caplog.at_level(logging.INFO, logger="elmo_framework.experiment.metadata"):
        found = measured(
            tmp_path,
            {"pretrained_file": str(tmp_path / "vectors.txt")},
            datasets_for_vocab_creation=["train"],
        )

    assert found == {
        "embedder.token_embedders.tokens": {
            "train": {"running_words": 3 / 4, "distinct_words": 2 / 3},
            "validation": {"running_words": 2 / 3, "distinct_words": 2 / 3},
        }
    }
    assert caplog.messages == [
        "embedder.token_embedders.tokens has vectors for "
        "75.0 % of the words of train (66.7 % of the distinct ones), "
        "66.7 % of the words of validation (66.7 % of the distinct ones)"
    ]


def test_the_test_data_is_looked_at_only_where_it_is_scored(tmp_path):
    found = measured(
        tmp_path, {"pretrained_file": str(tmp_path / "vectors.txt")}, evaluate_on_test=True
    )

    assert found["embedder.token_embedders.tokens"]["test"]["running_words"] == 1.0


def test_without_a_file_there_is_nothing_to_count(tmp_path):
    assert measured(tmp_path, {}) == {}


def test_files_besides_data_and_bilms_have_digests_by_their_dotted_paths(tmp_path):
    folder = tmp_path / "vocabulary"
    folder.mkdir()
    (folder / "words.txt").write_text("Anna\n")
    (tmp_path / "vectors.txt").write_text("the 1 2\n")
    (tmp_path / "train.txt").touch()
    embedders = {
        "tokens": {"embedding_dim": 2, "pretrained_file": str(tmp_path / "vectors.txt")},
        "elmo": {"type": "elmo_token_embedder", "options_file": "o.json", "weight_file": "w.h5"},
        "positions": {"type": "embedding", "embedding_dim": 2},
    }
    config = {
        "dataset_reader": "sequence_tagging",
        "train_data_path": str(tmp_path / "train.txt"),
        "vocabulary": {"directory": str(folder)},
        "model": {"type": "simple_tagger", "embedder": {"token_embedders": embedders}},
    }
    embedders["tokens"]["type"] = "embedding"

    assert digests_of_other_files(parse(Experiment, config, source="a.jsonnet")) == {
        "vocabulary.directory": digest([folder / "words.txt"]),
        "model.embedder.token_embedders.tokens.pretrained_file": digest([tmp_path / "vectors.txt"]),
    }
