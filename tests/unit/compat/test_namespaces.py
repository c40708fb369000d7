"""Namespaces that the readers of a config of AllenNLP count."""

from __future__ import annotations

from typing import Any

import pytest

from elmo_framework.compat.allennlp.namespaces import OF_READERS, namespaces

_LABELS = {"labels": "labels"}
_BYTES = {"type": "characters", "character_tokenizer": {"byte_encoding": "utf-8"}}


@pytest.mark.parametrize(
    ("reader", "counted"),
    [
        ("conll2003", {"tokens": "words"}),
        ({"type": "snli"}, {"tokens": "words"}),
        ({"type": "snli", "token_indexers": {"elmo": "elmo_characters"}}, {}),
        ({"type": "snli", "token_indexers": {"words": {}}}, {"tokens": "words"}),
        (
            {"type": "snli", "token_indexers": {"a": "characters", "b": _BYTES}},
            {"token_characters": "characters"},
        ),
        (
            {"type": "snli", "token_indexers": {"a": {"type": "characters", "namespace": "c"}}},
            {"c": "characters"},
        ),
        (
            {
                "type": "sharded",
                "base_reader": {"type": "snli", "token_indexers": {"a": "characters"}},
            },
            {"token_characters": "characters"},
        ),
        ({"type": "snli", "token_indexers": [3]}, {}),
        ({"type": ["snli"], "token_indexers": {"a": {"type": ["b"]}}}, {}),
    ],
)
def test_namespaces_are_those_of_the_indexers(reader: Any, counted: dict[str, str]) -> None:
    assert namespaces({"dataset_reader": reader}) == {**_LABELS, **counted}


def test_both_readers_are_counted() -> None:
    config = {
        "dataset_reader": {"type": "snli"},
        "validation_dataset_reader": {"type": "snli", "token_indexers": {"a": "characters"}},
    }
    counted = {"tokens": "words", "token_characters": "characters"}
    assert namespaces(config) == {**_LABELS, **counted}


def test_sentences_of_a_language_model_have_no_labels() -> None:
    config = {"dataset_reader": {"type": "simple_language_modeling"}}
    assert namespaces(config) == {"tokens": "words"}


def test_the_reader_of_a_plugin_counts_further_namespaces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(OF_READERS, "trees", {"tags": "pos"})
    counted = {"tokens": "words", "tags": "pos"}
    assert namespaces({"dataset_reader": "trees"}) == {**_LABELS, **counted}
    assert "tags" not in namespaces({"dataset_reader": "snli"})
