"""Convert plain values between JSON and Python with pydantic, and rephrase its errors."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    PydanticSchemaGenerationError,
    TypeAdapter,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    WrapValidator,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from elmo_framework.config.signature import replaced, show
from elmo_framework.console import plural
from elmo_framework.errors import DataError, Problem, dotted, hint, shown, with_hint
from elmo_framework.io.remote import as_path

_ADAPTERS: dict[int, tuple[Any, TypeAdapter[Any]]] = {}
"""By the identity of a hint: equal ones, as literals in another order, have other messages."""

_MAX_ADAPTERS = 10_000


def adapter(hint: Any) -> TypeAdapter[Any]:
    """Return the pydantic adapter of a type.

    Raises:
        TypeError: no configuration can hold such a value.
    """
    if id(hint) not in _ADAPTERS:
        if len(_ADAPTERS) >= _MAX_ADAPTERS:
            _ADAPTERS.clear()
        _ADAPTERS[id(hint)] = hint, _new_adapter(hint)  # with the hint, its id remains its own
    return _ADAPTERS[id(hint)][1]


def _new_adapter(hint: Any) -> TypeAdapter[Any]:
    try:
        return TypeAdapter(replaced(hint, Path, _NonEmptyPath))
    except PydanticSchemaGenerationError as error:
        advice = "let it inherit Registrable, or mark the parameter Injected"
        raise TypeError(f"{show(hint)} cannot be written in a config: {advice}") from error


def read(hint: Any, raw: object) -> Any:
    """Turn JSON into a plain value, strictly: `1` may be a float, `"x"` a Path, but `"1"` no int.

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
    """Return one problem for each path that pydantic rejected."""
    reasons: dict[str, list[ErrorDetails]] = {}
    for detail in error.errors(include_url=False):
        where = dotted(path, *_keys(detail, raw))
        reasons.setdefault(where, []).append(detail)
    return [Problem(where, _either(details)) for where, details in reasons.items()]


def _path(value: object, as_local: ValidatorFunctionWrapHandler) -> Any:
    if value == "":
        raise PydanticCustomError("empty_path", "Input should be a path that is not empty")
    path = as_local(value)
    try:
        return as_path(value) if isinstance(value, str) else path
    except DataError as error:
        raise PydanticCustomError("path", "{reason}", {"reason": str(error)}) from error


_NonEmptyPath = Annotated[
    Path,
    WrapValidator(_path),
    WithJsonSchema({"type": "string", "format": "path", "minLength": 1}),
]


def _with_one_number_type(raw: object) -> object:
    """Convert 3.0 to 3: jsonnet has one type of number, and JSON Schema calls both integers."""
    match raw:
        case float() if raw.is_integer():
            return int(raw)
        case list():
            return [_with_one_number_type(item) for item in raw]
        case dict():
            return {key: _with_one_number_type(item) for key, item in raw.items()}
    return raw


def _keys(detail: ErrorDetails, raw: Any) -> Iterator[int | str]:
    """Yield the keys of `raw` in a location, without what pydantic adds for members of a union."""
    for key in detail["loc"]:
        mapping = dict(enumerate(raw)) if isinstance(raw, list) else raw
        if isinstance(mapping, dict) and key in mapping:
            yield key
            raw = mapping[key]
    if detail["type"] == "missing":
        yield detail["loc"][-1]


def _either(details: list[ErrorDetails]) -> str:
    """Join the messages of the members of a union, followed by the rejected value."""
    if details[0]["type"] == "missing":
        return "is required"
    if details[0]["type"] == "too_short":
        return f"needs at least {plural(details[0]['ctx']['min_length'], 'item')}"
    first, *others = dict.fromkeys(detail["msg"] for detail in details)
    parts = [first, *(other.removeprefix("Input should be ") for other in others)]
    value = details[0]["input"]
    choices = re.findall(r"'([^']+)'", " ".join(parts)) if isinstance(value, str) else []
    return with_hint(f"{' or '.join(parts)}, not {shown(value)}", hint(str(value), choices))
