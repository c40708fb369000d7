"""Plain values between JSON and Python, by pydantic; its complaints in our words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pydantic import PydanticSchemaGenerationError, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from elmo_framework.common.errors import Problem, dotted
from elmo_framework.common.hints import show


def adapter(hint: Any) -> TypeAdapter[Any]:
    """Return what checks and writes values of a type.

    Raises:
        TypeError: no configuration can hold such a value.
    """
    try:
        return TypeAdapter(hint)
    except PydanticSchemaGenerationError as error:
        advice = "let it inherit Registrable, or mark the parameter Injected"
        raise TypeError(f"{show(hint)} is nothing a config can say: {advice}") from error


def read(hint: Any, raw: object) -> Any:
    """Turn JSON into a plain value, strictly: `1` is a float and `"x"` a Path, `"1"` no number.

    Raises:
        ValidationError: see `problems`.
    """
    return adapter(hint).validate_json(json.dumps(raw), strict=True)


def write(hint: Any, value: object) -> Any:
    """Turn a plain value back into JSON types."""
    return adapter(hint).dump_python(value, mode="json")


def problems(error: ValidationError, raw: object, path: str) -> list[Problem]:
    """List what pydantic refused, one problem for each path of the configuration."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for detail in error.errors(include_url=False):
        where = dotted(path, *_keys(detail, raw))
        reasons.setdefault((where, repr(detail["input"])), []).append(detail["msg"])
    return [Problem(where, _either(said, given)) for (where, given), said in reasons.items()]


def _keys(detail: ErrorDetails, raw: Any) -> Iterator[int | str]:
    """Keep the keys of `raw`; leave out what pydantic adds, as the members of a union."""
    for key in detail["loc"]:
        held = dict(enumerate(raw)) if isinstance(raw, list) else raw
        if isinstance(held, dict) and key in held:
            yield key
            raw = held[key]
    if detail["type"] == "missing":
        yield detail["loc"][-1]


def _either(reasons: list[str], given: str) -> str:
    first, *others = dict.fromkeys(reasons)
    parts = [first, *(other.removeprefix("Input should be ") for other in others)]
    return f"{' or '.join(parts)}, not {given}"
