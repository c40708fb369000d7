"""Parse the fields of documents in JSON objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from elmo_framework.data.formats.records import is_words, value_of
from elmo_framework.errors import DataError, shown
from elmo_framework.tasks.coreference.example import Cluster, Mention, clusters_of


def word_lists(fields: Mapping[str, Any], key: str) -> tuple[tuple[str, ...], ...]:
    """Return the lists of strings of a key; one empty list if there are none.

    Raises:
        DataError: the key is missing, or its value is malformed.
    """
    value = value_of(fields, key)
    if not isinstance(value, list) or not all(map(is_words, value)):
        raise DataError(f"{key!r} is {shown(value)}; expected a list of lists of strings")
    return tuple(map(tuple, value)) or ((),)


def clusters(fields: Mapping[str, Any], key: str) -> tuple[Cluster, ...]:
    """Return clusters: lists of pairs of a first and a last word.

    Raises:
        DataError: the value is malformed.
    """
    value = fields[key]
    if not isinstance(value, list) or not all(map(_is_cluster, value)):
        expected = "expected a list of clusters such as [[0, 0], [4, 5]]"
        raise DataError(f"{key!r} is {shown(value)}; {expected}")
    return clusters_of([[Mention(*pair) for pair in cluster] for cluster in value])


def _is_cluster(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_pair, value))


def _is_pair(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(type(each) is int for each in value)
