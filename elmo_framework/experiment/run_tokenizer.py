"""The tokenizer of a run: how the raw text of its data, or of its biLM, was split into words."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from elmo_framework.corpus.manifest import Manifest
from elmo_framework.errors import DataError

TokenizerConfig: TypeAlias = str | dict[str, Any]
"""A tokenizer by its registered name, or with keys, as in a config."""

_READERS = ("validation_dataset_reader", "dataset_reader")
_WHITESPACE = "whitespace"


def run_tokenizer(filled: Mapping[str, Any]) -> TokenizerConfig | None:
    """Return the tokenizer that new raw text should be split with; None if nothing tells.

    The first of: the key `tokenizer`, that of a dataset reader, that of the corpus that a biLM is
    trained on, that of the run of the model's biLM. Of text that was tokenized already, with spaces
    between words, it is not known.

    Args:
        filled: the filled config of the run.
    """
    readers = [reader for key in _READERS if isinstance(reader := filled.get(key), dict)]
    candidates = [
        filled.get("tokenizer"),
        *(reader.get("tokenizer") for reader in readers),
        _of_corpus(filled),
        *(_of_bilm(Path(path)) for path in _bilms(filled.get("model"))),
    ]
    return next((each for each in candidates if each and _name(each) != _WHITESPACE), None)


def _of_corpus(filled: Mapping[str, Any]) -> TokenizerConfig | None:
    """Return the tokenizer of `elmo prepare`, if the training data is a part of its corpus."""
    path = filled.get("train_data_path")
    try:
        settings = Manifest.read(Path(str(path)).parent).settings if path else {}
    except DataError:
        return None
    tokenizer = settings.get("tokenizer")
    return tokenizer if isinstance(tokenizer, str | dict) else None


def _of_bilm(folder: Path) -> TokenizerConfig | None:
    """Return what the run of a biLM recorded, given its folder or the folder `bilm` in it."""
    for place in (folder, folder.parent):
        try:
            recorded = json.loads((place / "metadata.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        tokenizer = recorded.get("tokenizer") if isinstance(recorded, dict) else None
        if isinstance(tokenizer, str | dict):
            return tokenizer
    return None


def _bilms(value: object) -> Iterator[str]:
    """Yield what stands under the keys `bilm` of a config."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "bilm" and isinstance(inner, str):
                yield inner
            else:
                yield from _bilms(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _bilms(inner)


def _name(tokenizer: object) -> object:
    return tokenizer.get("type") if isinstance(tokenizer, dict) else tokenizer
