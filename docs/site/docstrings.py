"""Convert docstrings of this project to reStructuredText.

They have names in single backticks, lists with `*`, tables, indented lines that are shown as they
are, and Google's sections, which Sphinx converts itself. All other characters mean themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

_SECTION = re.compile(r"(Args|Attributes|Raises|Returns|Yields):$")
_CODE = re.compile(r"(`[^`]*`)")
_NAME = re.compile(r"`[A-Za-z_][\w.]*`")
_SPECIAL = re.compile(r"([\\*|]|_\b)")


def to_restructured_text(lines: Sequence[str]) -> list[str]:
    """Return the lines of a docstring as reStructuredText with Google's sections."""
    return list(_converted(lines))


def _converted(lines: Sequence[str]) -> Iterator[str]:
    is_inside = False  # of a section or of a list, whose lines may be indented
    for is_paragraph, group in groupby(lines, bool):
        paragraph = list(group)
        if not is_paragraph:
            yield from paragraph
            continue
        is_table, is_indented = paragraph[0].startswith("|"), paragraph[0].startswith(" ")
        if not is_indented:
            is_inside = paragraph[0].startswith("* ") or bool(_SECTION.match(paragraph[0]))
        if is_table or (is_indented and not is_inside):
            yield from ("::", "", *(f"    {line}" for line in paragraph), "")
        else:
            yield from _escaped("\n".join(paragraph)).split("\n")


def _escaped(text: str) -> str:
    return "".join(
        (part if _NAME.fullmatch(part) else f"`{part}`")
        if part.startswith("`")
        else re.sub(r"(?m)^(\s*)\\\* ", r"\1* ", _SPECIAL.sub(r"\\\1", part))
        for part in _CODE.split(text)
    )
