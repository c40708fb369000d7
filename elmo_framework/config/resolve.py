"""Write checked configurations with all defaults, and rewrite their values and paths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, cast

from elmo_framework.config import plain
from elmo_framework.config.signature import (
    DictType,
    ListType,
    OptionalType,
    OptionsType,
    PlainType,
    Shape,
    TupleType,
    configurable,
    hint_metadata,
    walk,
)
from elmo_framework.config.types import Default, Lazy, MustExist, with_parts
from elmo_framework.errors import dotted

ValueT = TypeVar("ValueT")


def filled(lazy: Lazy[Any]) -> dict[str, Any]:
    """Return the configuration of `lazy` with all defaults.

    It parses to the same component even if the defaults change later.
    """
    config: dict[str, Any] = {} if lazy.name is None else {"type": lazy.name}
    for parameter in configurable(lazy.factory):
        value = lazy.arguments.get(parameter.name, parameter.default)
        config[parameter.name] = as_json(parameter.shape, value)
    return config


def as_json(shape: Shape, value: Any) -> Any:
    """Convert the value or the default of a parameter to JSON types."""
    match shape, value:
        case (_, None):
            content = None
        case (_, Default(raw)):
            content = raw
        case (OptionalType(item), _):
            content = as_json(item, value)
        case (ListType(item), _):
            content = [as_json(item, element) for element in value]
        case (TupleType(items), _):
            content = [as_json(item, element) for item, element in zip(items, value, strict=True)]
        case (DictType(item), _):
            content = {key: as_json(item, element) for key, element in value.items()}
        case (PlainType(hint), _):
            content = plain.write(hint, value)
        case _:
            content = filled(value) if isinstance(value, Lazy) else _options(shape, value)
    return content


def _options(shape: Shape, value: object) -> dict[str, Any]:
    assert isinstance(shape, OptionsType), shape
    return {
        option.name: as_json(option.shape, getattr(value, option.name))
        for option in configurable(shape.factory)
    }


def with_absolute_paths(value: ValueT) -> ValueT:
    """Return a checked configuration with absolute paths."""

    def absolute(item: Any) -> Any:
        return item.absolute() if isinstance(item, Path) else with_parts(item, absolute)

    return cast(ValueT, absolute(value))


def with_paths_in(folder: Path, value: ValueT) -> ValueT:
    """Return a checked configuration whose relative paths start from a folder."""

    def inside(item: Any) -> Any:
        return folder / item if isinstance(item, Path) else with_parts(item, inside)

    return cast(ValueT, inside(value))


def with_arguments(value: ValueT, changes: Mapping[str, Mapping[str, Any]]) -> ValueT:
    """Return a checked configuration with changed arguments.

    Args:
        value: the configuration.
        changes: by the dotted path of the component, the arguments by name.
    """

    def changed(item: Any) -> Any:
        if isinstance(item, Lazy) and item.path in changes:
            item = replace(item, arguments={**item.arguments, **changes[item.path]})
        return with_parts(item, changed)

    return cast(ValueT, changed(value))


@dataclass(frozen=True)
class Leaf:
    """One plain value of a configuration.

    Attributes:
        path: its dotted path.
        hint: its type in the signature.
        value: None for `null` or if the value was rejected.
    """

    path: str
    hint: Any
    value: Any


def leaves(lazy: Lazy[Any]) -> Iterator[Leaf]:
    """Yield all plain values of a configuration, also inside lazy and default components."""
    for parameter in configurable(lazy.factory):
        if parameter.name in lazy.arguments:
            path = dotted(lazy.path, parameter.name)
            yield from _leaves(parameter.shape, lazy.arguments[parameter.name], path)


def _leaves(shape: Shape, value: Any, path: str) -> Iterator[Leaf]:
    if isinstance(value, Lazy):
        yield from leaves(value)
    elif isinstance(shape, PlainType):
        yield Leaf(path, shape.hint, value)
    elif value is not None:
        for inner, element, inner_path in _elements(shape, value, path):
            yield from _leaves(inner, element, inner_path)


def _elements(shape: Shape, value: Any, path: str) -> Iterator[tuple[Shape, Any, str]]:
    match shape:
        case OptionalType(item):
            yield item, value, path
        case ListType(item):
            yield from ((item, element, dotted(path, i)) for i, element in enumerate(value))
        case TupleType(items):
            for index, (item, element) in enumerate(zip(items, value, strict=True)):
                yield item, element, dotted(path, index)
        case DictType(item):
            yield from ((item, element, dotted(path, key)) for key, element in value.items())
        case OptionsType(factory):
            for option in configurable(factory):
                yield option.shape, getattr(value, option.name), dotted(path, option.name)


def existing_paths(lazy: Lazy[Any]) -> Iterator[tuple[Leaf, MustExist]]:
    """Yield each path of a configuration that must exist, and how its parameter is marked."""
    for leaf in leaves(lazy):
        marks = [mark for part in walk(leaf.hint) for mark in hint_metadata(part)]
        if existence := [mark for mark in marks if isinstance(mark, MustExist)]:
            for path, value in paths_in(leaf.value, leaf.path):
                yield Leaf(path, leaf.hint, value), existence[0]


def paths_in(value: Any, path: str) -> Iterator[tuple[str, Path]]:
    """Yield the file paths in the value of a leaf, after their dotted paths; `path` is its own."""
    match value:
        case Path():
            yield path, value
        case list() | tuple():
            for index, item in enumerate(value):
                yield from paths_in(item, dotted(path, index))
        case dict():
            for key, item in value.items():
                yield from paths_in(item, dotted(path, key))
