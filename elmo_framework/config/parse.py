"""From a configuration to objects, in two steps: `parse` checks all of it, `Lazy.build` builds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, get_origin

from pydantic import ValidationError

from elmo_framework.config import plain
from elmo_framework.config.registry import default_member, members
from elmo_framework.config.signature import (
    ComponentType,
    DictType,
    ListType,
    LiteralType,
    OptionalType,
    OptionsType,
    Parameter,
    PlainType,
    Shape,
    configurable,
    parameters,
)
from elmo_framework.config.types import Component, Default, Lazy
from elmo_framework.errors import ConfigError, Problem, allowed, dotted, shown

ComponentT = TypeVar("ComponentT", bound=Component)


@dataclass(frozen=True)
class ParseResult(Generic[ComponentT]):
    """What `check` found out about a configuration.

    Attributes:
        source: the file it came from.
        component: what it describes; where a problem is, a part is missing or None.
        problems: everything that is wrong, each at its dotted path.
    """

    source: str
    component: Lazy[ComponentT] | None
    problems: tuple[Problem, ...]

    def required(self) -> Lazy[ComponentT]:
        """Return the component.

        Raises:
            ConfigError: there are problems.
        """
        if self.component is None or self.problems:
            raise ConfigError(self.source, self.problems)
        return self.component


def parse(family: type[ComponentT], raw: object, *, source: str) -> Lazy[ComponentT]:
    """Check a whole configuration against the constructors that it names.

    Args:
        family: what the top of the configuration describes.
        raw: the configuration, as JSON types.
        source: the file it came from, for messages.

    Raises:
        ConfigError: with every problem, each at its dotted path.
    """
    return check(family, raw, source=source).required()


def check(family: type[ComponentT], raw: object, *, source: str) -> ParseResult[ComponentT]:
    """Check as `parse` does, and return what could be read even where there are problems."""
    parser = _Parser(source)
    component = parser.value(ComponentType(get_origin(family) or family, is_lazy=True), raw, "")
    return ParseResult(source, component, tuple(parser.problems))


class _Parser:
    """Walks a configuration and its signatures together; notes problems and goes on."""

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
            case (LiteralType(items), list()) if len(items) == len(raw):
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
        self._note(path, f"expected {shape}, not {shown(raw)}")
        return None

    def _options(self, factory: type, given: Mapping[str, Any], path: str) -> Any:
        num_problems = len(self.problems)
        arguments = self._arguments(factory, given, path)
        if len(self.problems) > num_problems:
            return None
        try:
            return factory(**arguments)
        except ValueError as error:
            self._note(path, f"{factory.__qualname__}: {error}")
            return None

    def _component(
        self, shape: ComponentType, given: Mapping[str, Any], path: str
    ) -> Lazy[Any] | None:
        chosen = self._choose(shape.family, given, path)
        if chosen is None:
            return None
        name, factory = chosen
        rest = {key: given[key] for key in given if key != "type" or name is None}
        return Lazy(
            factory,
            name,
            arguments=self._arguments(factory, rest, path),
            supplies={p.name: p.supply for p in parameters(factory).values() if p.supply},
            source=self.source,
            path=path,
            is_kept=shape.is_lazy,
        )

    def _choose(
        self, family: type[Component], given: Mapping[str, Any], path: str
    ) -> tuple[str | None, type[Component]] | None:
        named, default = members(family), default_member(family)
        name = given.get("type")
        if default is not None and ("type" not in given or not named):
            return default
        if isinstance(name, str) and name in named:
            return name, named[name]
        self._note(dotted(path, "type"), _no_member(family, given, named))
        return None

    def _arguments(self, factory: type, given: Mapping[str, Any], path: str) -> dict[str, Any]:
        self._check_keys(factory, given, path)
        arguments = {}
        for parameter in configurable(factory):
            name, default = parameter.name, parameter.default
            if name in given:
                arguments[name] = self.value(parameter.shape, given[name], dotted(path, name))
            elif isinstance(default, Default):
                arguments[name] = self.value(parameter.shape, default.raw, dotted(path, name))
            elif parameter.is_required:
                self._require(factory, parameter, path)
        return arguments

    def _check_keys(self, factory: type, given: Mapping[str, Any], path: str) -> None:
        known = {parameter.name for parameter in configurable(factory)}
        for key in given:
            where = dotted(path, key)
            if key in parameters(factory) and key not in known:
                message = f"is given to {factory.__qualname__} by the framework; remove it"
                self._note(where, message)
            elif key not in known:
                self._note(where, f"is no key of {factory.__qualname__}; {allowed(key, known)}")

    def _require(self, factory: type, parameter: Parameter, path: str) -> None:
        message = f"is required by {factory.__qualname__} ({parameter.shape})"
        self._note(dotted(path, parameter.name), message)

    def _note(self, path: str, message: str) -> None:
        self.problems.append(Problem(path, message))


def _no_member(family: type[Component], given: Mapping[str, Any], named: Mapping[str, Any]) -> str:
    name = given.get("type")
    said = f"{shown(name)} is no {family.__name__}" if "type" in given else "is missing"
    message = f"{said}; {allowed(str(name), named)}"
    if isinstance(name, str) and family not in named.values():
        message += " A plugin registers others: name it in `plugins` or by --include-package"
    return message
