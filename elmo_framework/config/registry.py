"""Names for classes: the one place where a configuration's `type` becomes Python."""

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
    """Base of every component that a configuration can name.

    A family is a direct subclass (`Model`, `Encoder`); its members register under it or under
    a class between them (`Head`), all in one set of names:

        @Encoder.register("lstm")
        class LstmEncoder(Encoder): ...

    A concrete class can be asked for as well as a family; it needs no `type`.
    """

    @classmethod
    def register(cls, name: str) -> Callable[[ClassT], ClassT]:
        """Give the decorated class `name` within its family.

        Raises:
            TypeError: the class is no member of the family, or hides what a config may say.
            ValueError: the name is taken.
        """
        known = _members.setdefault(_family(cls), {})

        def add(member: ClassT) -> ClassT:
            if not issubclass(member, cls):
                raise TypeError(f"{member.__qualname__} does not inherit {cls.__name__}")
            if name in known:
                taken = f"{known[name].__module__}.{known[name].__qualname__}"
                raise ValueError(f"{cls.__name__} {name!r} is already {taken}")
            parameters(member)
            known[name] = member
            return member

        return add


def members(asked: type[Component]) -> dict[str, type[Component]]:
    """Return, by name, the classes that may stand where `asked` is asked for."""
    known = _members.get(_family(asked), {})
    return {name: member for name, member in known.items() if issubclass(member, asked)}


def default_member(asked: type[Component]) -> tuple[str | None, type[Component]] | None:
    """Return what an object without a `type` means where `asked` is asked for."""
    named = members(asked)
    own = next((name for name, member in named.items() if member is asked), asked.default_member)
    if own in named:
        return own, named[own]
    return None if named or inspect.isabstract(asked) else (None, asked)


def registered(name: str) -> list[type[Component]]:
    """Return the classes that a name stands for, in whatever family."""
    return [known[name] for known in _members.values() if name in known]


def families() -> dict[str, type[Component]]:
    """Return all families, and the concrete classes that stand alone, by name in snake case."""
    found: dict[str, type[Component]] = {}
    for family in Registrable.__subclasses__():
        found.setdefault(snake_case(family.__name__), family)
    return dict(sorted(found.items()))


def snake_case(name: str) -> str:
    """Write the name of a class as a config would: `token_embedder`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _family(asked: type[Component]) -> type[Component]:
    return next((base for base in asked.__mro__ if Registrable in base.__bases__), asked)
