"""Plain values between JSON and Python, by pydantic; its complaints in our words."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    BeforeValidator,
    PydanticSchemaGenerationError,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from elmo_framework.config.signature import replaced, show
from elmo_framework.errors import Problem, dotted, shown


def adapter(hint: Any) -> TypeAdapter[Any]:
    """Return what checks and writes values of a type.

    Raises:
        TypeError: no configuration can hold such a value.
    """
    try:
        return TypeAdapter(replaced(hint, Path, _NamedPath))
    except PydanticSchemaGenerationError as error:
        advice = "let it inherit Registrable, or mark the parameter Injected"
        raise TypeError(f"{show(hint)} is nothing a config can say: {advice}") from error


def read(hint: Any, raw: object) -> Any:
    """Turn JSON into a plain value, strictly: `1` is a float and `"x"` a Path, `"1"` no number.

    Raises:
        ValidationError: see `problems`.
    """
    return adapter(hint).validate_json(json.dumps(_with_one_number_type(raw)), strict=True)


def write(hint: Any, value: object) -> Any:
    """Turn a plain value back into JSON types."""
    return adapter(hint).dump_python(value, mode="json")


def json_schema(hint: Any) -> dict[str, Any]:
    """Return the JSON Schema of what `read` accepts; shared definitions are under `$defs`."""
    return adapter(hint).json_schema(ref_template="#/$defs/{model}")


def problems(error: ValidationError, raw: object, path: str) -> list[Problem]:
    """List what pydantic refused, one problem for each path of the configuration."""
    reasons: dict[str, list[ErrorDetails]] = {}
    for detail in error.errors(include_url=False):
        where = dotted(path, *_keys(detail, raw))
        reasons.setdefault(where, []).append(detail)
    return [Problem(where, _either(details)) for where, details in reasons.items()]


def _refuse_empty(given: object) -> object:
    if given == "":
        raise PydanticCustomError("empty_path", "Input should be a path that is not empty")
    return given


_NamedPath = Annotated[
    Path,
    BeforeValidator(_refuse_empty),
    WithJsonSchema({"type": "string", "format": "path", "minLength": 1}),
]


def _with_one_number_type(raw: object) -> object:
    """Write 3.0 as 3: jsonnet has one type of number, and JSON Schema calls both integers."""
    match raw:
        case float() if raw.is_integer():
            return int(raw)
        case list():
            return [_with_one_number_type(item) for item in raw]
        case dict():
            return {key: _with_one_number_type(item) for key, item in raw.items()}
    return raw


def _keys(detail: ErrorDetails, raw: Any) -> Iterator[int | str]:
    """Keep the keys of `raw`; leave out what pydantic adds, as the members of a union."""
    for key in detail["loc"]:
        held = dict(enumerate(raw)) if isinstance(raw, list) else raw
        if isinstance(held, dict) and key in held:
            yield key
            raw = held[key]
    if detail["type"] == "missing":
        yield detail["loc"][-1]


def _either(details: list[ErrorDetails]) -> str:
    """Join what the members of a union say against one value, which stands at the end."""
    if details[0]["type"] == "missing":
        return "is required"
    first, *others = dict.fromkeys(detail["msg"] for detail in details)
    parts = [first, *(other.removeprefix("Input should be ") for other in others)]
    given = details[0]["input"]
    return f"{' or '.join(parts)}, not {shown(given)}{_nearest(given, parts)}"


def _nearest(given: object, parts: list[str]) -> str:
    named = re.findall(r"'([^']+)'", " ".join(parts)) if isinstance(given, str) else []
    near = difflib.get_close_matches(str(given), named, n=1)
    return f". Did you mean {near[0]!r}?" if near else ""
