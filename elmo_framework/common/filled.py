"""A configuration with all its defaults written out, as a run keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, cast

from elmo_framework.common import plain
from elmo_framework.common.component import Default, Lazy
from elmo_framework.common.shapes import Fixed, Many, Maybe, Named, Options, Plain, Shape
from elmo_framework.common.signature import configurable

ValueT = TypeVar("ValueT")


def filled(lazy: Lazy[Any]) -> dict[str, Any]:
    """Return the configuration of `lazy` with every default written out.

    It parses to the same component, whatever the defaults become later.
    """
    written: dict[str, Any] = {} if lazy.name is None else {"type": lazy.name}
    for parameter in configurable(lazy.factory):
        value = lazy.arguments.get(parameter.name, parameter.default)
        written[parameter.name] = as_json(parameter.shape, value)
    return written


def as_json(shape: Shape, value: Any) -> Any:
    """Write the value or the default of a parameter as JSON types."""
    match shape, value:
        case (_, None):
            written = None
        case (_, Default(raw)):
            written = raw
        case (Maybe(item), _):
            written = as_json(item, value)
        case (Many(item), _):
            written = [as_json(item, held) for held in value]
        case (Fixed(items), _):
            written = [as_json(item, held) for item, held in zip(items, value, strict=True)]
        case (Named(item), _):
            written = {key: as_json(item, held) for key, held in value.items()}
        case (Plain(hint), _):
            written = plain.write(hint, value)
        case _:
            written = filled(value) if isinstance(value, Lazy) else _options(shape, value)
    return written


def _options(shape: Shape, value: object) -> dict[str, Any]:
    assert isinstance(shape, Options), shape
    held = configurable(shape.factory)
    return {option.name: as_json(option.shape, getattr(value, option.name)) for option in held}


def with_absolute_paths(value: ValueT) -> ValueT:
    """Return a checked configuration whose paths mean the same in every working directory."""
    return cast(ValueT, _absolute(value))


def with_arguments(value: ValueT, changes: Mapping[str, Mapping[str, Any]]) -> ValueT:
    """Return a checked configuration with other arguments for some of its components.

    Args:
        value: the configuration.
        changes: arguments by their names, by the dotted path of the component.
    """
    return cast(ValueT, _changed(value, changes))


def _changed(value: Any, changes: Mapping[str, Mapping[str, Any]]) -> Any:
    match value:
        case Lazy():
            arguments = {**value.arguments, **changes.get(value.path, {})}
            return replace(value, arguments=_changed(arguments, changes))
        case list():
            return [_changed(item, changes) for item in value]
        case dict():
            return {key: _changed(item, changes) for key, item in value.items()}
        case _:
            return value


def _absolute(value: Any) -> Any:
    match value:
        case Path():
            return value.absolute()
        case Lazy():
            return replace(value, arguments=_absolute(value.arguments))
        case list() | tuple():
            return type(value)(_absolute(item) for item in value)
        case dict():
            return {key: _absolute(item) for key, item in value.items()}
        case _ if is_dataclass(value) and not isinstance(value, type):
            held = {field.name: _absolute(getattr(value, field.name)) for field in fields(value)}
            return replace(value, **held)
        case _:
            return value
