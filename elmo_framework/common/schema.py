"""The configurations of a family as JSON Schema, for editors and for other programs."""

from __future__ import annotations

from typing import Any

from elmo_framework.common import plain
from elmo_framework.common.component import Component
from elmo_framework.common.describe import documented
from elmo_framework.common.filled import as_json
from elmo_framework.common.registry import default_member, members
from elmo_framework.common.shapes import Fixed, Many, Maybe, Named, One, Options, Plain, Shape
from elmo_framework.common.signature import Parameter, configurable


def schema(family: type[Component]) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of what `parse(family, ...)` accepts."""
    writer = _Writer()
    top = writer.shape(One(family, is_lazy=True))
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": family.__name__,
        **top,
        "$defs": writer.definitions,
    }


class _Writer:
    """Collects one definition for each family and each dataclass of options."""

    def __init__(self) -> None:
        self.definitions: dict[str, Any] = {}

    def shape(self, shape: Shape) -> dict[str, Any]:
        match shape:
            case Maybe(item):
                return {"anyOf": [self.shape(item), {"type": "null"}]}
            case Many(item):
                return {"type": "array", "items": self.shape(item)}
            case Fixed(items):
                inner = [self.shape(item) for item in items]
                bounds = {"minItems": len(inner), "maxItems": len(inner)}
                return {"type": "array", "prefixItems": inner, **bounds}
            case Named(item):
                return {"type": "object", "additionalProperties": self.shape(item)}
            case Plain(hint):
                return self._plain(hint)
            case Options(cls) | One(cls):
                return self._reference(cls)

    def _plain(self, hint: Any) -> dict[str, Any]:
        written = plain.json_schema(hint)
        self.definitions |= written.pop("$defs", {})
        return written

    def _reference(self, cls: type) -> dict[str, Any]:
        name = f"{cls.__module__}.{cls.__qualname__}"
        if name not in self.definitions:
            self.definitions[name] = {}  # stands for itself while it is written
            is_component = issubclass(cls, Component)
            self.definitions[name] = self._family(cls) if is_component else self._object(cls)
        return {"$ref": f"#/$defs/{name}"}

    def _family(self, family: type[Component]) -> dict[str, Any]:
        named, default = members(family), default_member(family)
        if not named and default is not None:
            return self._object(default[1])
        objects = [self._member(name, cls, (name, cls) == default) for name, cls in named.items()]
        bare = [name for name, cls in named.items() if not _required(cls)]
        return {"oneOf": [*objects, {"enum": bare}] if bare else objects}

    def _member(self, name: str, cls: type[Component], is_default: bool) -> dict[str, Any]:
        written = self._object(cls)
        written["properties"] = {"type": {"const": name}, **written["properties"]}
        written["required"] = [*([] if is_default else ["type"]), *written["required"]]
        return written

    def _object(self, factory: type) -> dict[str, Any]:
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
        written = self.shape(parameter.shape)
        if text:
            written["description"] = text
        if not parameter.is_required:
            written["default"] = as_json(parameter.shape, parameter.default)
        return written


def _required(factory: type) -> list[str]:
    return [parameter.name for parameter in configurable(factory) if parameter.is_required]
