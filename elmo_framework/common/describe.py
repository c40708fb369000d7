"""What a configuration may say: the families, their members, and the keys of each."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from elmo_framework.common.component import Component
from elmo_framework.common.errors import ElmoFrameworkError, allowed
from elmo_framework.common.filled import as_json
from elmo_framework.common.registry import families, members, snake_case
from elmo_framework.common.shapes import Options, leaf
from elmo_framework.common.signature import Parameter, configurable, parameters


class UnknownNameError(ElmoFrameworkError):
    """A family or a member that is not registered."""


@dataclass(frozen=True)
class Row:
    """One key: what it takes, its default as JSON (or "required"), what it means."""

    key: str
    type: str
    default: str
    text: str


def find_family(name: str) -> type[Component]:
    """Return a family, or a class that stands alone, by its name in either form.

    Raises:
        UnknownNameError: there is none.
    """
    known, asked = families(), snake_case(name)
    if asked not in known:
        raise UnknownNameError(f"{name!r} is no family; {allowed(asked, known)}")
    return known[asked]


def find_member(family: type[Component], name: str) -> type[Component]:
    """Return a member of a family by its registered name.

    Raises:
        UnknownNameError: there is none.
    """
    known = members(family)
    if name not in known:
        message = f"{name!r} is no {snake_case(family.__name__)}; {allowed(name, known)}"
        raise UnknownNameError(message)
    return known[name]


def describe(component: type) -> list[Row]:
    """Return a row for each key; those of a dataclass of options follow it as `key.option`."""
    return list(_rows(component))


def summary(component: type) -> str:
    """Return the first paragraph of the docstring."""
    return " ".join(explanation(component).partition("\n\n")[0].split())


def explanation(component: type) -> str:
    """Return the docstring without what it says about parameters and attributes."""
    return re.split(r"^(?:Args|Attributes):\n", _docstring(component), flags=re.MULTILINE)[
        0
    ].strip()


def supplied(component: type) -> dict[str, str]:
    """Return what the framework supplies, never a configuration: the meaning by name."""
    text = documented(component)
    held = parameters(component).values()
    return {each.name: text.get(each.name, "") for each in held if each.supply is not None}


def documented(component: type) -> dict[str, str]:
    """Return what `Args:` (or `Attributes:`) says about each parameter, here or in a base class."""
    entries: dict[str, str] = {}
    for each in reversed(component.__mro__):
        entries |= _entries(_docstring(each))
    return entries


def _entries(docstring: str) -> dict[str, str]:
    pattern = r"^(?:Args|Attributes):\n((?:[ ].*\n?|\n)*)"
    sections = re.findall(pattern, docstring, re.MULTILINE)
    entries = re.findall(r"^ {4}(\w+): (.*(?:\n {5,}.*)*)", "\n".join(sections), re.MULTILINE)
    return {name: " ".join(said.split()) for name, said in entries}


def _docstring(component: type) -> str:
    return inspect.cleandoc(vars(component).get("__doc__") or "")


def _rows(component: type) -> Iterator[Row]:
    text = documented(component)
    for parameter in configurable(component):
        name, inner = parameter.name, leaf(parameter.shape)
        yield Row(name, str(parameter.shape), _default(parameter), text.get(name, ""))
        if isinstance(inner, Options):
            for row in _rows(inner.factory):
                yield replace(row, key=f"{name}.{row.key}")


def _default(parameter: Parameter) -> str:
    if parameter.is_required:
        return "required"
    return json.dumps(as_json(parameter.shape, parameter.default))
