"""Prediction inputs: examples without labels, and the JSON objects they are made from."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Generic, NamedTuple, TypeVar

from elmo_framework.data.formats.records import is_words, value_of
from elmo_framework.data.tokenizer import Tokenizer
from elmo_framework.errors import DataError, allowed, shown

ExampleT = TypeVar("ExampleT")


@dataclass(frozen=True, slots=True)
class PredictionInput(Generic[ExampleT]):
    """One input to predict for.

    Attributes:
        example: without labels, even if the input has them.
        fields: the other JSON values of the input by name (an id, the gold label, other columns);
            copied to the output.
        texts: the raw texts that the words of the example are from, by the names of their keys or
            columns; empty where the input was words.
    """

    example: ExampleT
    fields: Mapping[str, Any]
    texts: Mapping[str, str] = field(default_factory=dict)

    def output(self, prediction: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields and the prediction as one JSON object.

        A field with the name of a predicted value is renamed to `input_NAME`: the gold label of a
        file is `input_label` next to the predicted `label`.
        """
        output = {name: value for name, value in self.fields.items() if name not in prediction}
        output |= prediction
        for name, value in self.fields.items():
            if name in prediction:
                while name in output:
                    name = f"input_{name}"
                output[name] = value
        return output


class Predicted(NamedTuple):
    """A prediction and its input.

    Attributes:
        prediction: as the task knows it.
        input: that it is for.
        probabilities: see `PredictionRecord`.
        is_calibrated: whether the probabilities are those of a fitted temperature.
    """

    prediction: Any
    input: PredictionInput[Any]
    probabilities: Sequence[Mapping[str, float]] = ()
    is_calibrated: bool = False


def other_fields(values: Mapping[str, Any], used: Sequence[str]) -> dict[str, Any]:
    """Return the values whose names are not in `used`."""
    return {name: value for name, value in values.items() if name not in used}


def raw_texts(values: Mapping[str, Any], keys: Sequence[str]) -> dict[str, str]:
    """Return the values of `keys` that are strings, not lists of words."""
    return {key: values[key] for key in keys if isinstance(values.get(key), str)}


def require_object(inputs: Mapping[str, Any], keys: Sequence[str]) -> None:
    """Raise DataError for a plain sentence if an example needs several texts."""
    if set(inputs) == {"sentence"}:
        template = json.dumps(dict.fromkeys(keys, "..."))
        raise DataError(f"a plain sentence is not enough; pass {template}")


def only_key(inputs: Mapping[str, Any], keys: Sequence[str]) -> str:
    """Return the only one of `keys` that an object has.

    Raises:
        DataError: it has none of them, or several.
    """
    present = [key for key in keys if key in inputs]
    if len(present) != 1:
        names = ", ".join(map(repr, present or inputs)) or "none"
        similar = (key for key in inputs if get_close_matches(key, keys))
        choices = allowed(next(similar, ""), keys)
        raise DataError(f"expected one key with a text, found {names}; {choices}")
    return present[0]


def input_words(inputs: Mapping[str, Any], key: str, tokenizer: Tokenizer) -> tuple[str, ...]:
    """Return the words of a value: a raw text to tokenize, or a list of words.

    Raises:
        DataError: the key is missing, or its value is neither.
    """
    value = value_of(inputs, key)
    if isinstance(value, str):
        return tuple(tokenizer.words(value))
    if is_words(value):
        return tuple(value)
    raise DataError(f"{key!r} is {shown(value)}; expected a string or a list of strings")
