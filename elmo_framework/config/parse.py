"""Check a configuration against constructors: `parse` returns a `Lazy` that can be built."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, get_origin

from pydantic import ValidationError

from elmo_framework.config import plain
from elmo_framework.config.registry import default_member, family_of, members
from elmo_framework.config.signature import (
    ComponentType,
    DictType,
    ListType,
    OptionalType,
    OptionsType,
    PlainType,
    Shape,
    TupleType,
    component_class,
    configurable,
    parameters,
)
from elmo_framework.config.types import Component, Default, Factory, Lazy, Supply
from elmo_framework.errors import ConfigError, Problem, allowed, dotted, nearest, shown

ComponentT = TypeVar("ComponentT", bound=Component)


@dataclass(frozen=True)
class ParseResult(Generic[ComponentT]):
    """Result of `check`.

    Attributes:
        source: the file of the configuration.
        component: the checked component; parts with problems are missing or None.
        problems: all problems, each at its dotted path.
    """

    source: str
    component: Lazy[ComponentT] | None
    problems: tuple[Problem, ...]

    def unwrap(self) -> Lazy[ComponentT]:
        """Return the component, or raise ConfigError if there are problems."""
        if self.component is None or self.problems:
            raise ConfigError(self.source, self.problems)
        return self.component


def parse(family: type[ComponentT], raw: object, *, source: str) -> Lazy[ComponentT]:
    """Check a whole configuration, as JSON types, against the constructors of its components.

    Raises:
        ConfigError: with every problem in the file `source`, each at its dotted path.
    """
    return check(family, raw, source=source).unwrap()


def check(family: type[ComponentT], raw: object, *, source: str) -> ParseResult[ComponentT]:
    """Check as `parse` does, but return the problems along with the parts that are valid."""
    parser = _Parser(source)
    component = parser.value(ComponentType(get_origin(family) or family, is_lazy=True), raw, "")
    return ParseResult(source, component, tuple(parser.problems))


class _Parser:
    """Walks a configuration and its signatures together, and collects all problems."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.problems: list[Problem] = []

    def value(self, shape: Shape, raw: Any, path: str) -> Any:
        match shape, raw:
            case (OptionalType(), None):
                value = None
            case (OptionalType(item), _):
                value = self.value(item, raw, path)
            case (ListType(item), list()):
                value = [self.value(item, raw[i], dotted(path, i)) for i in range(len(raw))]
            case (TupleType(items), list()) if len(items) == len(raw):
                value = tuple(
                    self.value(item, raw[i], dotted(path, i)) for i, item in enumerate(items)
                )
            case (DictType(item), dict()):
                value = {key: self.value(item, raw[key], dotted(path, key)) for key in raw}
            case (PlainType(hint), _):
                value = self._plain(hint, raw, path)
            case _:
                value = self._object(shape, raw, path)
        return value

    def _plain(self, hint: Any, raw: object, path: str) -> Any:
        try:
            return plain.read(hint, raw)
        except ValidationError as error:
            self.problems += plain.problems(error, raw, path)
            return None

    def _object(self, shape: Shape, raw: object, path: str) -> Any:
        match shape, raw:
            case (OptionsType(factory), dict()):
                return self._options(factory, raw, path)
            case (ComponentType(), str()):
                return self._component(shape, {"type": raw}, path)
            case (ComponentType(), dict()):
                return self._component(shape, raw, path)
        message = f"expected {shape}, not {'null' if raw is None else shown(raw)}"
        if isinstance(shape, ComponentType) and (known := members(shape.family)):
            message += f"; {allowed(shown(raw), known)}"
        self._note(path, message)
        return None

    def _options(self, factory: Callable[..., Any], raw: Mapping[str, Any], path: str) -> Any:
        num_problems = len(self.problems)
        arguments = self._arguments(factory, raw, path)
        if len(self.problems) > num_problems:
            return None
        try:
            return factory(**arguments)
        except ValueError as error:
            self._note(path, f"{factory.__qualname__}: {error}")
            return None

    def _component(
        self, shape: ComponentType, raw: Mapping[str, Any], path: str
    ) -> Lazy[Any] | None:
        member = self._find_member(shape.family, raw, path)
        if member is None:
            return None
        name, factory = member
        rest = {key: raw[key] for key in raw if key != "type" or name is None}
        return Lazy(
            factory,
            name,
            arguments=self._arguments(factory, rest, path),
            supplies={p.name: p.supply for p in parameters(factory).values() if p.supply},
            source=self.source,
            path=path,
            is_kept=shape.is_lazy,
        )

    def _find_member(
        self, family: type[Component], raw: Mapping[str, Any], path: str
    ) -> tuple[str | None, Factory] | None:
        classes, default = members(family), default_member(family)
        name = raw.get("type")
        if default is not None and ("type" not in raw or not classes):
            return default
        if isinstance(name, str) and name in classes:
            return name, classes[name]
        self._note(dotted(path, "type"), _unknown_type(family, raw, classes))
        return None

    def _arguments(
        self, factory: Callable[..., Any], raw: Mapping[str, Any], path: str
    ) -> dict[str, Any]:
        self._check_keys(factory, raw, path)
        arguments = {}
        for parameter in configurable(factory):
            name, default = parameter.name, parameter.default
            if name in raw:
                arguments[name] = self.value(parameter.shape, raw[name], dotted(path, name))
            elif isinstance(default, Default):
                arguments[name] = self.value(parameter.shape, default.raw, dotted(path, name))
            elif parameter.is_required:
                message = f"is required by {factory.__qualname__} ({parameter.shape})"
                self._note(dotted(path, name), message + _mark_of_others(factory, name))
        return arguments

    def _check_keys(self, factory: Callable[..., Any], raw: Mapping[str, Any], path: str) -> None:
        keys = {parameter.name for parameter in configurable(factory)}
        for key in raw:
            if key in parameters(factory) and key not in keys:
                message = f"is supplied to {factory.__qualname__} by the framework; remove it"
                self._note(dotted(path, key), message)
            elif key not in keys:
                message = f"unknown key of {factory.__qualname__}; {allowed(key, keys)}"
                self._note(dotted(path, key), message)

    def _note(self, path: str, message: str) -> None:
        self.problems.append(Problem(path, message))


def _mark_of_others(factory: Callable[..., Any], name: str) -> str:
    """Advise to mark a parameter that the framework supplies to other members of the family."""
    for member in members(family_of(component_class(factory))).values():
        parameter = parameters(member).get(name)
        if parameter is not None and parameter.supply is not None:
            mark = "Injected" if parameter.supply is Supply.TREE else "Local"
            return f"; the framework supplies it if its type is marked {mark}[...]"
    return ""


def _unknown_type(
    family: type[Component], raw: Mapping[str, Any], classes: Mapping[str, Any]
) -> str:
    name = raw.get("type")
    misspelled = nearest("type", list(raw))
    absence = "is missing" if misspelled is None else f"is missing (found {misspelled!r})"
    problem = f"unknown {family.__name__} {shown(name)}" if "type" in raw else absence
    message = f"{problem}; {allowed(str(name), classes)}"
    if isinstance(name, str) and family not in classes.values():
        message += " For a plugin, add it to `plugins` or pass --include-package"
    return message
