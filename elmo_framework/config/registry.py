"""Registry of components: maps the `type` of a configuration to a class or a function."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import TypeVar

from elmo_framework.config.docstrings import documented
from elmo_framework.config.signature import component_class, parameters
from elmo_framework.config.types import Component, Factory

ComponentT = TypeVar("ComponentT", bound=Component)
FactoryT = TypeVar("FactoryT", bound=Factory)

_members: dict[type[Component], dict[str, Factory]] = {}


class Registrable(Component):
    """Base class of every component with a registered name.

    A family is a direct subclass (`Model`, `Encoder`). Its members register under it or under
    a class between them (`Head`), in one namespace:

        @Encoder.register("lstm")
        class LstmEncoder(Encoder): ...

        @Initializer.register("zero")
        def zero() -> Initializer: ...

    A parameter may also have a concrete class as its type; its object needs no `type`.
    """

    @classmethod
    def register(cls, name: str) -> Callable[[FactoryT], FactoryT]:
        """Register the decorated class or function as `name` in its family.

        Raises:
            TypeError: the class does not inherit the family, the function is not annotated to
                return it, or the parameters are not a schema.
            ValueError: the name is taken.
        """
        family = _members.setdefault(family_of(cls), {})

        def add(member: FactoryT) -> FactoryT:
            _require_member(member, cls)
            if name in family:
                taken = f"{family[name].__module__}.{family[name].__qualname__}"
                raise ValueError(f"{cls.__name__} {name!r} is already {taken}")
            parameters(member)
            family[name] = member
            return member

        return add


def _require_member(member: Factory, base: type[Component]) -> None:
    cls = component_class(member)
    if not issubclass(cls, base):
        verb = "inherit" if cls is member else "return"
        raise TypeError(f"{member.__qualname__} does not {verb} {base.__name__}")
    for name in cls.class_attributes:
        if not hasattr(cls, name):
            function = "" if cls is member else f"{member.__qualname__}: "
            raise TypeError(
                f"{function}{cls.__name__} has no attribute {name!r}; set `{name} = ...` in the "
                f"class: {documented(cls).get(name)}"
            )


def members(base: type[Component]) -> dict[str, Factory]:
    """Return the registered subclasses of `base`, and the functions that return one, by name."""
    family = _members.get(family_of(base), {})
    return {
        name: member for name, member in family.items() if issubclass(component_class(member), base)
    }


def member_classes(base: type[ComponentT]) -> dict[str, type[ComponentT]]:
    """Return the classes of the members of `base`: themselves, or what they return."""
    classes = {name: component_class(member) for name, member in members(base).items()}
    return {name: cls for name, cls in classes.items() if issubclass(cls, base)}


def default_member(base: type[Component]) -> tuple[str | None, Factory] | None:
    """Return the name and the member that an object without a `type` means for `base`."""
    by_name = members(base)
    own = next((name for name, member in by_name.items() if member is base), base.default_member)
    if own in by_name:
        return own, by_name[own]
    return None if by_name or inspect.isabstract(base) else (None, base)


def registered(name: str) -> list[Factory]:
    """Return the members of all families that are registered under a name."""
    return [family[name] for family in _members.values() if name in family]


def registered_name(component: Component) -> str:
    """Return the name that the class of a component is registered under; else that of the class."""
    cls = type(component)
    names = (name for name, each in member_classes(cls).items() if each is cls)
    return next(names, cls.__name__)


def families() -> dict[str, type[Component]]:
    """Return all direct subclasses of `Registrable` by name in snake case."""
    by_name: dict[str, type[Component]] = {}
    for family in Registrable.__subclasses__():
        by_name.setdefault(snake_case(family.__name__), family)
    return dict(sorted(by_name.items()))


def snake_case(name: str) -> str:
    """Convert a class name as in `TokenEmbedder` to `token_embedder`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def family_of(cls: type[Component]) -> type[Component]:
    """Return the direct subclass of `Registrable` that a class inherits; else the class."""
    return next((base for base in cls.__mro__ if Registrable in base.__bases__), cls)
