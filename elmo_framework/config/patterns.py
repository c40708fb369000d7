"""Regular expressions over parameter names, as in `initializer` and `no_grad`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

_NUM_NEAREST = 3


def _compiled(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        message = "Input should be a regular expression ({reason})"
        raise PydanticCustomError("regex", message, {"reason": str(error)}) from error
    return pattern


Regex: TypeAlias = Annotated[
    str, AfterValidator(_compiled), WithJsonSchema({"type": "string", "format": "regex"})
]
"""Matches anywhere in a name, as `re.search` does."""


def no_match(pattern: str, names: Sequence[str]) -> str:
    """Return the message for a pattern that matches no parameter, with the nearest names."""
    near = ", ".join(repr(name) for name in nearest(pattern, names))
    return f"{pattern!r} matches no parameter's name; the nearest are {near}"


def nearest(pattern: str, names: Iterable[str]) -> list[str]:
    """Return the names most similar to a pattern, the nearest first."""
    text = re.sub(r"[^\w.]|\.(?=[*+?])", "", pattern)
    by_similarity = sorted(names, key=lambda name: -SequenceMatcher(None, text, name).ratio())
    return by_similarity[:_NUM_NEAREST]
