"""A configuration with all its defaults written out, as a run keeps it."""

from __future__ import annotations

from typing import Any

from elmo_framework.common import plain
from elmo_framework.common.component import Default, Lazy
from elmo_framework.common.shapes import Many, Maybe, Named, Options, Plain, Shape
from elmo_framework.common.signature import configurable


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
