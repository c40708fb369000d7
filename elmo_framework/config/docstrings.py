"""Descriptions of classes, functions and their parameters, from docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

from elmo_framework.config.signature import component_class


def summary(component: Callable[..., Any]) -> str:
    """Return the first paragraph of the docstring."""
    return " ".join(explanation(component).partition("\n\n")[0].split())


def explanation(component: Callable[..., Any]) -> str:
    """Return the docstring up to `Args:` or `Attributes:`."""
    return re.split(r"^(?:Args|Attributes):\n", _docstring(component), flags=re.MULTILINE)[
        0
    ].strip()


def documented(component: Callable[..., Any]) -> dict[str, str]:
    """Return the descriptions in `Args:` or `Attributes:`, by name.

    Those of base classes are included; for a function, those of the class that it returns.
    """
    entries: dict[str, str] = {}
    for base in (*reversed(component_class(component).__mro__), component):
        entries |= _entries(_docstring(base))
    return entries


def _entries(docstring: str) -> dict[str, str]:
    pattern = r"^(?:Args|Attributes):\n((?:[ ].*\n?|\n)*)"
    sections = re.findall(pattern, docstring, re.MULTILINE)
    entries = re.findall(r"^ {4}(\w+): (.*(?:\n {5,}.*)*)", "\n".join(sections), re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in entries}


def _docstring(component: object) -> str:
    return inspect.cleandoc(component.__doc__ or "")
