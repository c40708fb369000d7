"""The plain values of a checked configuration, one after the other, with their dotted paths."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmo_framework.common.component import Lazy
from elmo_framework.common.errors import dotted
from elmo_framework.common.shapes import Fixed, Many, Maybe, Named, Options, Plain, Shape
from elmo_framework.common.signature import configurable


@dataclass(frozen=True)
class Leaf:
    """One plain value that a configuration says.

    Attributes:
        path: its dotted path.
        hint: its type in the signature.
        value: what it says; None where `null` or where it was refused.
    """

    path: str
    hint: Any
    value: Any

    def paths(self) -> Iterator[Path]:
        """Yield the paths that the value is or holds."""
        yield from _paths(self.value)


def leaves(lazy: Lazy[Any]) -> Iterator[Leaf]:
    """Yield what a configuration says, defaults of components included; also inside lazy parts."""
    for parameter in configurable(lazy.factory):
        if parameter.name in lazy.arguments:
            path = dotted(lazy.path, parameter.name)
            yield from _leaves(parameter.shape, lazy.arguments[parameter.name], path)


def _leaves(shape: Shape, value: Any, path: str) -> Iterator[Leaf]:
    if isinstance(value, Lazy):
        yield from leaves(value)
    elif isinstance(shape, Plain):
        yield Leaf(path, shape.hint, value)
    elif value is not None:
        for inner, held, where in _held(shape, value, path):
            yield from _leaves(inner, held, where)


def _held(shape: Shape, value: Any, path: str) -> Iterator[tuple[Shape, Any, str]]:
    match shape:
        case Maybe(item):
            yield item, value, path
        case Many(item):
            yield from ((item, held, dotted(path, index)) for index, held in enumerate(value))
        case Fixed(items):
            for index, (item, held) in enumerate(zip(items, value, strict=True)):
                yield item, held, dotted(path, index)
        case Named(item):
            yield from ((item, held, dotted(path, key)) for key, held in value.items())
        case Options(factory):
            for option in configurable(factory):
                yield option.shape, getattr(value, option.name), dotted(path, option.name)


def _paths(value: Any) -> Iterator[Path]:
    match value:
        case Path():
            yield value
        case list() | tuple():
            for item in value:
                yield from _paths(item)
        case dict():
            for item in value.values():
                yield from _paths(item)
