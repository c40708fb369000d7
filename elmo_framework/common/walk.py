"""The plain values of a checked configuration, one after the other, with their dotted paths."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from elmo_framework.common.component import Lazy
from elmo_framework.common.errors import dotted
from elmo_framework.common.shapes import Many, Maybe, Named, Options, Plain, Shape
from elmo_framework.common.signature import configurable


@dataclass(frozen=True)
class Leaf:
    """One plain value, given or by default.

    Attributes:
        path: its dotted path.
        hint: its type in the signature.
        value: what the configuration says, or the default.
    """

    path: str
    hint: Any
    value: Any


def leaves(lazy: Lazy[Any]) -> Iterator[Leaf]:
    """Yield the plain values of a component and of all that it holds, unbuilt parts included."""
    for parameter in configurable(lazy.factory):
        if parameter.name in lazy.arguments:
            path = dotted(lazy.path, parameter.name)
            yield from _leaves(parameter.shape, lazy.arguments[parameter.name], path)


def _leaves(shape: Shape, value: Any, path: str) -> Iterator[Leaf]:
    match shape, value:
        case (_, None):
            return
        case (_, Lazy()):
            yield from leaves(value)
        case (Maybe(item), _):
            yield from _leaves(item, value, path)
        case (Many(item), list()):
            for index, held in enumerate(value):
                yield from _leaves(item, held, dotted(path, index))
        case (Named(item), dict()):
            for key, held in value.items():
                yield from _leaves(item, held, dotted(path, key))
        case (Options(factory), _):
            for option in configurable(factory):
                inner = dotted(path, option.name)
                yield from _leaves(option.shape, getattr(value, option.name), inner)
        case (Plain(hint), _):
            yield Leaf(path, hint, value)
