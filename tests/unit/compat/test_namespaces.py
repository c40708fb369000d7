"""Namespaces that the readers of a config of AllenNLP count."""

from __future__ import annotations

from typing import Any

import pytest

from elmo_framework.compat.allennlp.namespaces import (
    OF_READERS,
    namespaces,
    one_namespace,
)
from elmo_framework.compat.allennlp.rules import Context, Place

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


def refusals(vocabulary: str, value: str, *, reader: Any, model: Any) -> list[str]:
    context = Context({"dataset_reader": reader, "model": model})
    one_namespace(vocabulary)(Place(context).at("namespace"), value)
    assert len(context.problems) + len(context.notes) == 1
    return [problem.message for problem in context.problems]


def test_words_may_have_another_name_that_all_parts_share() -> None:
    reader = {"type": "snli", "token_indexers": {"a": {"namespace": "ids"}}}
    embedder = {"embedding_dim": 3, "vocab_namespace": "ids"}
    model = {"text_field_embedder": {"token_embedders": {"a": embedder}}}
    assert refusals("words", "ids", reader=reader, model=model) == []
    assert (
        refusals("words", "ids", reader=reader, model={"text_field_embedder": {"a": embedder}})
        == []
    )
    (message,) = refusals("words", "ids", reader={"type": "snli"}, model=model)
    assert message == "words have one vocabulary here, but other parts name 'tokens'"


def test_labels_may_have_another_name_that_all_parts_share() -> None:
    reader = {"type": "conll2003", "label_namespace": "ner_labels"}
    model = {"label_namespace": "ner_labels"}
    assert namespaces({"dataset_reader": reader})["ner_labels"] == "labels"
    assert refusals("labels", "ner_labels", reader=reader, model=model) == []
    (message,) = refusals("labels", "ner_labels", reader=reader, model={})
    assert message == "labels have one vocabulary here, but other parts name 'labels'"
    named = {"label_namespace": "ner"}
    (message,) = refusals("labels", "ner", reader={**reader, **named}, model=named)
    assert message == "AllenNLP gives labels of this name padding; choose another"
