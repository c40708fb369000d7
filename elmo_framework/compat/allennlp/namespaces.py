"""Namespaces of AllenNLP's vocabularies, and the vocabularies here that have their items."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from elmo_framework.compat.allennlp.rules import Place, Rule

_DEFAULT_INDEXERS = {"tokens": {"type": "single_id"}}
_OF_CHARACTERS = "token_characters"
_WITHOUT_LABELS = {"simple_language_modeling", "squad", "squad1", "coref"}

OF_READERS: dict[str, Mapping[str, str]] = {}
"""Our vocabulary of each further namespace that a reader counts, by AllenNLP's name of the reader.

All but labels have padding and an unknown item."""


def namespaces(config: Mapping[str, Any]) -> dict[str, str]:
    """Return our vocabulary of each namespace that the readers of a config count.

    Args:
        config: AllenNLP's.
    """
    names: dict[str, str] = {}
    blocks = map(reader_block, map(config.get, ("dataset_reader", "validation_dataset_reader")))
    for reader in filter(None, blocks):
        kind = str(reader.get("type"))
        labels = str(reader.get("label_namespace") or "labels")
        names |= {} if kind in _WITHOUT_LABELS else {labels: "labels"}
        names |= OF_READERS.get(kind, {})
        names |= dict(_of_indexers(reader))
    return names


def names_of(config: Mapping[str, Any], vocabulary: str) -> list[str]:
    """Return AllenNLP's namespaces of one of our vocabularies, such as `words`."""
    return [name for name, own in namespaces(config).items() if own == vocabulary]


def one_namespace(vocabulary: str) -> Rule:
    """Return a rule for the namespace of words or labels, which have one vocabulary here.

    Args:
        vocabulary: `words` or `labels`.
    """

    def rule(here: Place, value: Any) -> Mapping[str, Any]:
        raw = here.context.raw
        names = {*names_of(raw, vocabulary), *_of_model(raw, vocabulary)}
        is_unpadded = isinstance(value, str) and value.endswith(("labels", "tags"))
        if names != {value}:
            others = ", ".join(sorted(map(repr, names - {value})))
            here.problem(f"{vocabulary} have one vocabulary here, but other parts name {others}")
        elif is_unpadded is not (vocabulary == "labels"):
            has = "no padding" if is_unpadded else "padding"
            here.problem(f"AllenNLP gives {vocabulary} of this name {has}; choose another")
        else:
            here.note("dropped", f"{vocabulary} have one vocabulary")
        return {}

    return rule


def _of_model(config: Mapping[str, Any], vocabulary: str) -> Iterator[str]:
    """Yield the namespaces that the model names, or AllenNLP's default of each of its parts."""
    model = config.get("model")
    model = model if isinstance(model, dict) else {}
    if vocabulary == "labels":
        yield str(model.get("label_namespace") or "labels")
    else:
        for embedder in word_embedders(model):
            yield str(embedder.get("vocab_namespace") or "tokens")


def word_embedders(model: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the embeddings of words of a model's `text_field_embedder`, in any of its forms."""
    field = model.get("text_field_embedder")
    inner = field.get("token_embedders", field) if isinstance(field, dict) else None
    for each in inner.values() if isinstance(inner, dict) else ():
        is_block = isinstance(each, dict) and "embedding_dim" in each
        if is_block and each.get("type", "embedding") == "embedding":
            yield each


def keeps_rare_words(config: Mapping[str, Any]) -> bool:
    """Return whether words of frozen vectors are kept, however rare they are in the data.

    That is so where the vocabulary names the file of all embeddings of words, which are frozen.
    """
    vocabulary, model = config.get("vocabulary"), config.get("model")
    options = vocabulary if isinstance(vocabulary, dict) else {}
    files, limits = (options.get(key) for key in ("pretrained_files", "min_count"))
    if not (isinstance(files, dict) and isinstance(limits, dict) and isinstance(model, dict)):
        return False
    names = names_of(config, "words")
    listed = [file for name in names if name in limits and (file := files.get(name)) is not None]
    embedders = [*word_embedders(model)]
    return bool(listed and embedders) and all(
        [each.get("pretrained_file")] == listed and each.get("trainable") is False
        for each in embedders
    )


def unseen_words(here: Place) -> int | None:
    """Return how many words that are not counted have the vectors of a file; None for all."""
    if keeps_rare_words(here.context.raw):
        here.note("differs", "words of the file that the data lacks have their vectors too")
        return None
    here.note("added", "max_unseen_words: 0; AllenNLP has vectors for words of the data only")
    return 0


def _of_indexers(reader: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for indexer in token_indexers(reader).values():
        kind = indexer.get("type", "single_id")
        if kind == "single_id":
            yield str(indexer.get("namespace") or "tokens"), "words"
        elif kind == "characters" and not character_tokenizer(indexer).get("byte_encoding"):
            yield character_namespace(indexer), "characters"


def reader_block(value: Any) -> Mapping[str, Any]:
    """Return the block of a reader, or of the reader of its shards; empty if it is none."""
    while isinstance(value, dict) and isinstance(value.get("base_reader"), dict):
        value = value["base_reader"]
    value = {"type": value} if isinstance(value, str) else value
    return value if isinstance(value, dict) else {}


def token_indexers(reader: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the indexers of a reader by name; by default, that of words."""
    indexers = reader.get("token_indexers")
    values = _DEFAULT_INDEXERS if indexers is None else indexers
    listed = values.items() if isinstance(values, dict) else ()
    return {name: each if isinstance(each, dict) else {"type": each} for name, each in listed}


def character_tokenizer(indexer: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the tokenizer of an indexer of characters; empty if it has none."""
    values = indexer.get("character_tokenizer")
    return values if isinstance(values, dict) else {}


def character_namespace(indexer: Mapping[str, Any]) -> str:
    """Return the namespace of an indexer of characters."""
    return str(indexer.get("namespace") or _OF_CHARACTERS)
