"""Tags of spans, checked where they are read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from elmo_framework.data.paths import placed
from elmo_framework.data.tagging import Scheme, convert, parse_tag


def span_tags(
    tags: Sequence[str], *, scheme: Scheme | None, path: Path, lines: Sequence[int]
) -> tuple[str, ...]:
    """Return the tags of a sentence in a scheme; as they are when it is None.

    Args:
        tags: in any scheme.
        scheme: in which they are wanted.
        path: the file that they stand in.
        lines: the line of each tag.

    Raises:
        DataError: one of them is no tag of a span.
    """
    for tag, line in zip(tags, lines, strict=True):
        with placed(path, line):
            parse_tag(tag)
    return tuple(tags if scheme is None else convert(tags, scheme))
