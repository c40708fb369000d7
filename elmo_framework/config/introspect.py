"""List the families, members and keys of configurations, as tables and as JSON Schema."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from elmo_framework.config import plain
from elmo_framework.config.docstrings import documented
from elmo_framework.config.registry import default_member, families, members, snake_case
from elmo_framework.config.resolve import as_json
from elmo_framework.config.signature import (
    ComponentType,
    DictType,
    ListType,
    OptionalType,
    OptionsType,
    Parameter,
    PlainType,
    Shape,
    TupleType,
    configurable,
    leaf,
    parameters,
)
from elmo_framework.config.types import Component, Factory
from elmo_framework.errors import ElmoFrameworkError, allowed, nearest

_PLUGIN_HINT = "For a plugin, pass --include-package"
_OTHER_NAMES = {
    "callbacks": "callback",
    "embedder": "text_embedder",
    "head": "model",
    "learning_rate_scheduler": "schedule",
    "mix": "layer_mix",
    "observer": "callback",
    "reader": "dataset_reader",
    "scheduler": "schedule",
    "token_embedders": "token_embedder",
    "trainer": "trainer_options",
}
"""Families by keys of configs, by names in AllenNLP, and by those of earlier versions."""


@dataclass(frozen=True)
class KeyRow:
    """One key with its type, its default as JSON (or "required") and its description."""

    key: str
    type: str
    default: str
    text: str


def find_family(name: str) -> type[Component]:
    """Return a direct subclass of `Registrable` by its class name, that in snake case or a key.

    Raises:
        ElmoFrameworkError: there is none.
    """
    by_name, key = families(), snake_case(name)
    key = _OTHER_NAMES.get(key, key) if key not in by_name else key
    if key not in by_name:
        near = nearest(
            key, [*by_name, *(each for cls in by_name.values() for each in members(cls))]
        )
        of_member = [f"{family} {near}" for family in families_with(near or "")]
        places = [near] if near in by_name else of_member
        question = f" Did you mean {' or '.join(map(repr, places))}?" if places else ""
        message = f"unknown component family {name!r}; {allowed('', by_name)}{question}"
        raise ElmoFrameworkError(f"{message} {_PLUGIN_HINT}")
    return by_name[key]


def families_with(member: str) -> list[str]:
    """Return the names of the families that have a member of a name."""
    return [family for family, cls in families().items() if member in members(cls)]


def find_member(family: type[Component], name: str) -> Factory:
    """Return a member of a family by its registered name.

    Raises:
        ElmoFrameworkError: there is none.
    """
    by_name = members(family)
    if name not in by_name:
        message = f"unknown {snake_case(family.__name__)} {name!r}; {allowed(name, by_name)}"
        raise ElmoFrameworkError(f"{message} {_PLUGIN_HINT}")
    return by_name[name]


def describe(component: Callable[..., Any]) -> list[KeyRow]:
    """Return one row per key.

    The options of a dataclass follow it as `key.option`, those in a dict as `key.NAME.option`.
    """
    return list(_rows(component))


def supplied(component: Callable[..., Any]) -> dict[str, str]:
    """Return the descriptions of the parameters that the framework supplies, by name."""
    text = documented(component)
    return {
        parameter.name: text.get(parameter.name, "")
        for parameter in parameters(component).values()
        if parameter.supply is not None
    }


def _rows(component: Callable[..., Any]) -> Iterator[KeyRow]:
    text = documented(component)
    for parameter in configurable(component):
        name, inner = parameter.name, leaf(parameter.shape)
        yield KeyRow(name, str(parameter.shape), _default(parameter), text.get(name, ""))
        if isinstance(inner, OptionsType):
            item = f"{name}.NAME" if isinstance(parameter.shape, DictType) else name
            for row in _rows(inner.factory):
                yield replace(row, key=f"{item}.{row.key}")


def _default(parameter: Parameter) -> str:
    if parameter.is_required:
        return "required"
    return json.dumps(as_json(parameter.shape, parameter.default))


def schema(family: type[Component]) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of what `parse(family, ...)` accepts."""
    writer = _Writer()
    top = writer.shape(ComponentType(family, is_lazy=True))
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": family.__name__,
        **top,
        "$defs": writer.definitions,
    }


class _Writer:
    """Collects the definitions of families and dataclasses of options."""

    def __init__(self) -> None:
        self.definitions: dict[str, Any] = {}

    def shape(self, shape: Shape) -> dict[str, Any]:
        match shape:
            case OptionalType(item):
                return {"anyOf": [self.shape(item), {"type": "null"}]}
            case ListType(item):
                return {"type": "array", "items": self.shape(item)}
            case TupleType(items):
                inner = [self.shape(item) for item in items]
                bounds = {"minItems": len(inner), "maxItems": len(inner)}
                return {"type": "array", "prefixItems": inner, **bounds}
            case DictType(item):
                return {"type": "object", "additionalProperties": self.shape(item)}
            case PlainType(hint):
                return self._plain(hint)
            case OptionsType(cls) | ComponentType(cls):
                return self._reference(cls)

    def _plain(self, hint: Any) -> dict[str, Any]:
        json_schema = plain.json_schema(hint)
        self.definitions |= json_schema.pop("$defs", {})
        return json_schema

    def _reference(self, cls: type) -> dict[str, Any]:
        name = f"{cls.__module__}.{cls.__qualname__}"
        if name not in self.definitions:
            self.definitions[name] = {}  # placeholder, for recursive definitions
            is_component = issubclass(cls, Component)
            self.definitions[name] = self._family(cls) if is_component else self._object(cls)
        return {"$ref": f"#/$defs/{name}"}

    def _family(self, family: type[Component]) -> dict[str, Any]:
        classes, default = members(family), default_member(family)
        if not classes and default is not None:
            return self._object(default[1])
        objects = [self._member(name, cls, (name, cls) == default) for name, cls in classes.items()]
        names = [name for name, cls in classes.items() if not _required(cls)]
        return {"oneOf": [*objects, {"enum": names}] if names else objects}

    def _member(self, name: str, factory: Factory, is_default: bool) -> dict[str, Any]:
        json_schema = self._object(factory)
        json_schema["properties"] = {"type": {"const": name}, **json_schema["properties"]}
        json_schema["required"] = [*([] if is_default else ["type"]), *json_schema["required"]]
        return json_schema

    def _object(self, factory: Callable[..., Any]) -> dict[str, Any]:
        text = documented(factory)
        return {
            "type": "object",
            "properties": {
                parameter.name: self._property(parameter, text.get(parameter.name))
                for parameter in configurable(factory)
            },
            "required": _required(factory),
            "additionalProperties": False,
        }

    def _property(self, parameter: Parameter, text: str | None) -> dict[str, Any]:
        json_schema = self.shape(parameter.shape)
        if text:
            json_schema["description"] = text
        if not parameter.is_required:
            json_schema["default"] = as_json(parameter.shape, parameter.default)
        return json_schema


def _required(factory: Callable[..., Any]) -> list[str]:
    return [parameter.name for parameter in configurable(factory) if parameter.is_required]
