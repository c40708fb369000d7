"""The vocabularies that an experiment counts."""

import json
from collections import Counter
from pathlib import Path

import pytest

from elmo_framework.config.parse import parse
from elmo_framework.errors import DataError
from elmo_framework.experiment.experiment import Experiment, Split

WORDS = ["ab", "ab", "bc", "dé"]
EMBEDDER = {"token_embedders": {"tokens": {"type": "embedding", "embedding_dim": 2}}}


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"max_vocab_size": {"words": 1}}, Counter("ababbcdé")),
        ({"min_count": {"characters": 2}}, Counter("abbab")),
    ],
)
def test_characters_are_those_of_all_words(
    limits: dict[str, object], expected: Counter[str], tmp_path: Path
) -> None:
    path = tmp_path / "train.jsonl"
    path.write_text(json.dumps({"tokens": WORDS, "tags": ["O"] * len(WORDS)}))
    config = {
        "dataset_reader": "tagging_json",
        "train_data_path": str(path),
        "model": {"type": "simple_tagger", "embedder": EMBEDDER},
        "vocabulary": limits,
    }
    vocabularies = parse(Experiment, config, source="test").build().count_vocabularies()

    assert vocabularies.counted("characters") == expected


def test_characters_need_no_vocabulary_without_limits(tmp_path: Path) -> None:
    path = tmp_path / "train.jsonl"
    path.write_text(json.dumps({"tokens": WORDS, "tags": ["O"] * len(WORDS)}))
    config = {
        "dataset_reader": "tagging_json",
        "train_data_path": str(path),
        "model": {"type": "simple_tagger", "embedder": EMBEDDER},
    }
    vocabularies = parse(Experiment, config, source="test").build().count_vocabularies()

    assert "characters" not in vocabularies.names
    assert vocabularies.characters().items[2:] == ("b", "a", "c", "d", "é")


@pytest.mark.parametrize("split", ["train", "validation"])
@pytest.mark.parametrize("make", [iter, list])
def test_a_reader_that_returns_no_examples_is_an_error(
    split: Split, make: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "empty.jsonl"
    path.touch()
    config = {
        "dataset_reader": "tagging_json",
        "train_data_path": str(path),
        "validation_data_path": str(path),
        "model": {"type": "simple_tagger", "embedder": EMBEDDER},
    }
    experiment = parse(Experiment, config, source="test").build()
    monkeypatch.setattr(type(experiment.reader(split)), "read", lambda self, path: make(()))

    with pytest.raises(DataError, match=r"empty.jsonl: this file has no examples"):
        list(experiment.examples(split))
