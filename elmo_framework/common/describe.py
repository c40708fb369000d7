"""What a configuration may say about one component, as the rows of a table."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from elmo_framework.common.filled import as_json
from elmo_framework.common.shapes import Options, leaf
from elmo_framework.common.signature import Parameter, configurable


@dataclass(frozen=True)
class Row:
    """One key: what it takes, its default as JSON (or "required"), what it means."""

    key: str
    type: str
    default: str
    text: str


def describe(component: type) -> list[Row]:
    """Return a row for each key; those of a dataclass of options follow it as `key.option`."""
    return list(_rows(component))


def documented(component: type) -> dict[str, str]:
    """Return what the docstring's `Args:` (or `Attributes:`) says about each parameter."""
    text = inspect.getdoc(component) or ""
    sections = re.findall(r"^(?:Args|Attributes):\n((?:[ ].*\n?|\n)*)", text, re.MULTILINE)
    entries = re.findall(r"^ {4}(\w+): (.*(?:\n {5,}.*)*)", "\n".join(sections), re.MULTILINE)
    return {name: " ".join(said.split()) for name, said in entries}


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
