"""Registry of components: maps the `type` of a configuration to a class."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import TypeVar

from elmo_framework.config.signature import parameters
from elmo_framework.config.types import Component

ClassT = TypeVar("ClassT", bound=type[Component])

_members: dict[type[Component], dict[str, type[Component]]] = {}


class Registrable(Component):
    """Base class of every component with a registered name.

    A family is a direct subclass (`Model`, `Encoder`). Its members register under it or under
    a class between them (`Head`), in one namespace:

        @Encoder.register("lstm")
        class LstmEncoder(Encoder): ...

    A parameter may also have a concrete class as its type; its object needs no `type`.
    """

    @classmethod
    def register(cls, name: str) -> Callable[[ClassT], ClassT]:
        """Register the decorated class as `name` in its family.

        Raises:
            TypeError: the class does not inherit the family, or its constructor is no schema.
            ValueError: the name is taken.
        """
        classes = _members.setdefault(_family(cls), {})

        def add(member: ClassT) -> ClassT:
            if not issubclass(member, cls):
                raise TypeError(f"{member.__qualname__} does not inherit {cls.__name__}")
            if name in classes:
                taken = f"{classes[name].__module__}.{classes[name].__qualname__}"
                raise ValueError(f"{cls.__name__} {name!r} is already {taken}")
            parameters(member)
            classes[name] = member
            return member

        return add


def members(base: type[Component]) -> dict[str, type[Component]]:
    """Return the registered subclasses of `base` by name."""
    classes = _members.get(_family(base), {})
    return {name: member for name, member in classes.items() if issubclass(member, base)}


def default_member(base: type[Component]) -> tuple[str | None, type[Component]] | None:
    """Return the name and the class that an object without a `type` means for `base`."""
    classes = members(base)
    own = next((name for name, member in classes.items() if member is base), base.default_member)
    if own in classes:
        return own, classes[own]
    return None if classes or inspect.isabstract(base) else (None, base)


def registered(name: str) -> list[type[Component]]:
    """Return the classes registered under a name, in all families."""
    return [classes[name] for classes in _members.values() if name in classes]


def families() -> dict[str, type[Component]]:
    """Return all direct subclasses of `Registrable` by name in snake case."""
    by_name: dict[str, type[Component]] = {}
    for family in Registrable.__subclasses__():
        by_name.setdefault(snake_case(family.__name__), family)
    return dict(sorted(by_name.items()))


def snake_case(name: str) -> str:
    """Convert a class name as in `TokenEmbedder` to `token_embedder`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _family(cls: type[Component]) -> type[Component]:
    return next((base for base in cls.__mro__ if Registrable in base.__bases__), cls)
