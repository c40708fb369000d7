"""Namespaces of AllenNLP's vocabularies, and the vocabularies here that have their items."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_DEFAULT_INDEXERS = {"tokens": {"type": "single_id"}}
_OF_CHARACTERS = "token_characters"
_WITHOUT_LABELS = {"simple_language_modeling"}

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
        names |= {} if kind in _WITHOUT_LABELS else {"labels": "labels"}
        names |= OF_READERS.get(kind, {})
        names |= dict(_of_indexers(reader))
    return names


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
