"""Tables of characters in archives of AllenNLP: their rows in our order."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from elmo_framework.compat.allennlp.namespaces import (
    character_namespace,
    character_tokenizer,
    reader_block,
    token_indexers,
)
from elmo_framework.compat.allennlp.tensors import UnknownWeightsError

_TABLE = re.compile(r"token_embedder_(.+)\._embedding\._module\.weight$")
_NUM_BYTES = 256


def fitted_tables(
    config: Mapping[str, Any],
    vocabulary: Mapping[str, Sequence[str]],
    weights: Mapping[str, Tensor],
) -> dict[str, Tensor]:
    """Return the weights, where tables of characters have the rows that are read, in our order.

    AllenNLP's table may be longer: as long as the vocabulary of words, or 262 for bytes, of which
    the config names the marks at both ends of a word.

    Raises:
        UnknownWeightsError: a row that is needed is not there, or bytes have no marks.
    """
    indexers = token_indexers(reader_block(config.get("dataset_reader")))
    fitted = dict(weights)
    for name, table in weights.items():
        if (match := _TABLE.search(name)) is None:
            continue
        rows = _rows(indexers.get(match[1], {}), vocabulary)
        if rows is None:
            message = f"{name}: only bytes with one mark at each end of a word, and characters of a"
            raise UnknownWeightsError(f"{message} vocabulary, are the same here")
        if max(rows) >= len(table):
            raise UnknownWeightsError(f"{name} has {len(table)} rows; it needs {1 + max(rows)}")
        fitted[name] = table[rows]
    return fitted


def _rows(indexer: Mapping[str, Any], vocabulary: Mapping[str, Sequence[str]]) -> list[int] | None:
    """Return the row of each of our ids; None where the characters are others."""
    if indexer.get("type") != "characters":
        return None
    tokenizer = character_tokenizer(indexer)
    if not tokenizer.get("byte_encoding"):
        return list(range(1 + len(vocabulary.get(character_namespace(indexer), []))))
    match tokenizer.get("start_tokens"), tokenizer.get("end_tokens"):
        case [int(begin)], [int(end)]:
            return [*range(1 + _NUM_BYTES), begin, end]
    return None
