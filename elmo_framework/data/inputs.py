"""Inputs to predict for: examples without labels, and the JSON objects that they are made of."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Generic, TypeVar

from elmo_framework.data.formats.records import is_words, value_of
from elmo_framework.data.tokenizer import Tokenizer
from elmo_framework.errors import DataError, allowed, shown

ExampleT = TypeVar("ExampleT")


@dataclass(frozen=True, slots=True)
class PredictionInput(Generic[ExampleT]):
    """One input to predict for.

    Attributes:
        example: without labels, whether the input has them or not.
        fields: what else the input holds, as JSON values by name (an id, the gold label, other
            columns); copied to the output.
    """

    example: ExampleT
    fields: Mapping[str, Any]

    def output(self, prediction: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields and the prediction as one JSON object.

        A field with the name of a value that is predicted is called `input_NAME`: the gold label of
        a file is `input_label` next to the predicted `label`.
        """
        output = {name: value for name, value in self.fields.items() if name not in prediction}
        output |= prediction
        for name, value in self.fields.items():
            if name in prediction:
                while name in output:
                    name = f"input_{name}"
                output[name] = value
        return output


def other_fields(values: Mapping[str, Any], used: Sequence[str]) -> dict[str, Any]:
    """Return the values whose names are not among those that an example is made of."""
    return {name: value for name, value in values.items() if name not in used}


def require_object(inputs: Mapping[str, Any], keys: Sequence[str]) -> None:
    """Refuse a plain sentence, where several texts are needed.

    Raises:
        DataError: it is one.
    """
    if set(inputs) == {"sentence"}:
        needed = json.dumps(dict.fromkeys(keys, "..."))
        raise DataError(f"a plain sentence is not enough; give {needed}")


def only_key(inputs: Mapping[str, Any], keys: Sequence[str]) -> str:
    """Return the one of some keys that an object has.

    Raises:
        DataError: it has none of them, or several.
    """
    given = [key for key in keys if key in inputs]
    if len(given) != 1:
        found = ", ".join(map(repr, given or inputs)) or "none"
        similar = (key for key in inputs if get_close_matches(key, keys))
        known = allowed(next(similar, ""), keys)
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
