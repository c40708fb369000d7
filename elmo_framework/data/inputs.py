"""What people give to a finished model: JSON objects with raw text or words."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from elmo_framework.common.errors import DataError, allowed, shown
from elmo_framework.data.records import is_words, value_of
from elmo_framework.data.tokenizer import Tokenizer


def require_known(inputs: Mapping[str, Any], keys: Sequence[str]) -> None:
    """Refuse keys that mean nothing, which may be mistyped.

    Raises:
        DataError: there is one.
    """
    for key in inputs:
        if key not in keys:
            raise DataError(f"{key!r} is no key of an input; {allowed(key, keys)}")


def require_object(
    inputs: Mapping[str, Any], keys: Sequence[str], *, optional: Sequence[str] = ()
) -> None:
    """Refuse a plain sentence, where several texts are needed, and keys that mean nothing.

    Raises:
        DataError: it is one, or there is such a key.
    """
    if set(inputs) == {"sentence"}:
        needed = json.dumps(dict.fromkeys(keys, "..."))
        raise DataError(f"a plain sentence is not enough; give {needed}")
    require_known(inputs, (*keys, *optional))


def only_key(inputs: Mapping[str, Any], keys: Sequence[str]) -> str:
    """Return the one of some keys that an object has.

    Raises:
        DataError: it has none of them, or several.
    """
    given = [key for key in keys if key in inputs]
    if len(given) != 1:
        found = ", ".join(map(repr, given or inputs)) or "none"
        known = allowed(next(iter(inputs), ""), keys)
        raise DataError(f"expected one key that holds a text, found {found}; {known}")
    return given[0]


def given_words(inputs: Mapping[str, Any], key: str, tokenizer: Tokenizer) -> tuple[str, ...]:
    """Return the words of a value: raw text, or a list of words as they are.

    Raises:
        DataError: the object has no such key, or it holds something else.
    """
    value = value_of(inputs, key)
    if isinstance(value, str):
        return tuple(tokenizer.words(value))
    if is_words(value):
        return tuple(value)
    raise DataError(f"{key!r} is {shown(value)}; expected a string or a list of strings")
