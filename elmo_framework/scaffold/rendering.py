"""Fill in the templates of configs and plugins."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment, Template

_LENGTH_OF_LINE = 100
_BARE_KEY = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_KEYWORDS = re.compile(
    "assert|else|error|false|for|function|if|import|importbin|importstr|in|local|null|self|super|"
    "tailstrict|then|true"
)
"""Keywords of jsonnet, which must be quoted as keys."""


def template(name: str) -> Template:
    """Return a template by its path in the folder `templates`."""
    return _templates().get_template(name)


def as_jsonnet(value: Any, *, indent: int = 0, first: int = 0) -> str:
    """Return a JSON value in the style of the shipped configs.

    Args:
        value: of JSON types.
        indent: of the line that it begins on, in spaces.
        first: the length of what is before and after it on this line.
    """
    if isinstance(value, str):
        inner = json.dumps(value, ensure_ascii=False)[1:-1].replace('\\"', '"')
        return "'" + inner.replace("'", "\\'") + "'"
    match value:
        case dict():
            start, end = "{ ", " }"
            parts = [
                f"{_key(key)}: {as_jsonnet(inner, indent=indent + 2, first=len(key) + 3)}"
                for key, inner in value.items()
            ]
        case list():
            start, end = "[", "]"
            parts = [as_jsonnet(inner, indent=indent + 2, first=1) for inner in value]
        case _:
            return json.dumps(value)
    line = start + ", ".join(parts) + end
    if not parts:
        return line.replace(" ", "")
    if indent + first + len(line) <= _LENGTH_OF_LINE and "\n" not in line:
        return line
    inside = "".join(f"{' ' * (indent + 2)}{part},\n" for part in parts)
    return start.strip() + "\n" + inside + " " * indent + end.strip()


def _key(key: str) -> str:
    is_bare = _BARE_KEY.fullmatch(key) and not _KEYWORDS.fullmatch(key)
    return key if is_bare else as_jsonnet(key)


@cache
def _templates() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    templates = Environment(
        loader=PackageLoader("elmo_framework.scaffold"),
        autoescape=False,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    templates.filters |= {"jsonnet": as_jsonnet, "count": "{:,}".format, "percent": "{:.0%}".format}
    return templates
