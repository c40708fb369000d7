from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from elmo_framework.corpus.manifest import Manifest
from elmo_framework.experiment.run_tokenizer import run_tokenizer

GERMAN = {"type": "spacy", "language": "de"}
WHITESPACE = {"type": "whitespace"}


@pytest.mark.parametrize(
    ("filled", "expected"),
    [
        ({"tokenizer": GERMAN, "dataset_reader": {"tokenizer": "spacy"}}, GERMAN),
        ({"tokenizer": None, "dataset_reader": {"tokenizer": GERMAN}}, GERMAN),
        (
            {
                "dataset_reader": {"tokenizer": GERMAN},
                "validation_dataset_reader": {"type": "sst_tokens"},
            },
            GERMAN,
        ),
        ({"dataset_reader": {"tokenizer": WHITESPACE}}, None),
        ({"dataset_reader": {"type": "conll2003"}, "model": {"dropout": 0.5}}, None),
    ],
)
def test_config_of_a_run_tells_its_tokenizer(filled: dict[str, Any], expected: object):
    assert run_tokenizer(filled) == expected


def test_prepared_corpus_tells_its_tokenizer(tmp_path: Path):
    manifest = Manifest({"tokenizer": GERMAN}, {}, ())
    (tmp_path / "corpus.json").write_text(manifest.text())

    assert run_tokenizer({"train_data_path": str(tmp_path / "training")}) == GERMAN
    (tmp_path / "corpus.json").write_text("{")
    assert run_tokenizer({"train_data_path": str(tmp_path / "training")}) is None


@pytest.mark.parametrize("inner", ["", "bilm"])
def test_run_of_the_bilm_tells_its_tokenizer(tmp_path: Path, inner: str):
    (tmp_path / "metadata.json").write_text(json.dumps({"tokenizer": GERMAN}))
    elmo = {"type": "elmo_token_embedder", "bilm": str(tmp_path / inner)}
    filled = {"model": {"embedders": [{"elmo": elmo}]}, "dataset_reader": {"type": "conll2003"}}

    assert run_tokenizer(filled) == GERMAN
    (tmp_path / "metadata.json").write_text("[]")
    assert run_tokenizer(filled) is None
