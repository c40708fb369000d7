"""The few shapes that a configuration's value can have, read from a type hint."""

from __future__ import annotations

import types
from dataclasses import dataclass, is_dataclass
from typing import Any, TypeAlias, get_origin

from elmo_framework.common.component import Component, Lazy
from elmo_framework.common.hints import is_union, opened, parts, show


@dataclass(frozen=True)
class Plain:
    """Numbers, strings, paths, literals, and lists, dicts, tuples and unions of them."""

    hint: Any

    def __str__(self) -> str:
        return show(self.hint)


@dataclass(frozen=True)
class Options:
    """A dataclass of plain values."""

    factory: type

    def __str__(self) -> str:
        return self.factory.__name__


@dataclass(frozen=True)
class One:
    """A component, built before its owner or kept lazy for it."""

    family: type[Component]
    is_lazy: bool

    def __str__(self) -> str:
        return self.family.__name__


@dataclass(frozen=True)
class Many:
    """A list."""

    item: Shape

    def __str__(self) -> str:
        return f"list[{self.item}]"


@dataclass(frozen=True)
class Fixed:
    """A list of a fixed length, each item with a shape of its own."""

    items: tuple[Shape, ...]

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.items))}]"


@dataclass(frozen=True)
class Named:
    """A dict by name."""

    item: Shape

    def __str__(self) -> str:
        return f"dict[str, {self.item}]"


@dataclass(frozen=True)
class Maybe:
    """Something or None."""

    item: Shape

    def __str__(self) -> str:
        return f"{self.item} | None"


Shape: TypeAlias = Plain | Options | One | Many | Fixed | Named | Maybe


def shape_of(hint: Any) -> Shape:
    """Read one type hint; what holds no component and no dataclass is `Plain` as a whole.

    Raises:
        TypeError: it holds a component or a dataclass where none can stand.
    """
    origin, arguments = opened(hint)
    if origin is Lazy and arguments and isinstance(inner := shape_of(*arguments), One):
        return One(inner.family, is_lazy=True)
    if _is_component(origin):
        return One(origin, is_lazy=False)
    if _is_options(origin):
        return Options(origin)
    is_plain = not any(map(_is_ours, parts(hint)))
    return Plain(hint) if is_plain else _container(hint)


def leaf(shape: Shape) -> Plain | Options | One:
    """Return what stands inside the lists, dicts and `| None` of a shape.

    Of a list of a fixed length it is the first item that is not plain.
    """
    if isinstance(shape, Fixed):
        return next(inner for inner in map(leaf, shape.items) if not isinstance(inner, Plain))
    return leaf(shape.item) if isinstance(shape, Many | Named | Maybe) else shape


def _container(hint: Any) -> Shape:
    origin, arguments = opened(hint)
    rest = [argument for argument in arguments if argument is not types.NoneType]
    if origin is list:
        return Many(shape_of(*arguments))
    if origin is tuple and Ellipsis not in arguments:
        return Fixed(tuple(map(shape_of, arguments)))
    if origin is dict and arguments[0] is str:
        return Named(shape_of(arguments[1]))
    if is_union(hint) and len(rest) == 1:
        return Maybe(shape_of(rest[0]))
    raise TypeError(
        f"{show(hint)}: a component or a dataclass stands alone, in list[...], in dict[str, ...], "
        "in tuple[A, B] or with `| None`; Lazy[...] goes around a component only"
    )


def _is_ours(hint: Any) -> bool:
    origin = get_origin(hint) or hint
    return origin is Lazy or _is_component(origin) or _is_options(origin)


def _is_component(origin: Any) -> bool:
    return isinstance(origin, type) and issubclass(origin, Component)


def _is_options(origin: Any) -> bool:
    return isinstance(origin, type) and is_dataclass(origin) and origin is not Lazy
