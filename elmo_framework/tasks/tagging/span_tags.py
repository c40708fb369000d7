"""Check and convert tags of spans while reading."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from elmo_framework.data.formats.columns import CellError
from elmo_framework.data.tagging import Scheme, beginnings, convert, parse_tag
from elmo_framework.errors import DataError


def tags_in_scheme(
    tags: Sequence[str], scheme: Scheme | None, *, are_spans: bool = False
) -> tuple[str, ...]:
    """Convert the tags of a sentence to a scheme; return them unchanged for None.

    Args:
        tags: in any scheme. Without `scheme`, they may be tags that do not mark spans, but only if
            that holds for all of them; otherwise the middle of a misspelled span would be lost.
        scheme: the scheme of the result.
        are_spans: whether to reject tags that do not mark spans in any case.

    Raises:
        CellError: one of them is not a span tag.
    """
    one_of_span = next(beginnings(tags), None)
    if are_spans or scheme is not None or one_of_span is not None:
        for position, tag in enumerate(tags):
            try:
                parse_tag(tag)
            except ValueError as error:
                contrast = "" if one_of_span is None else f" ({one_of_span!r} next to it is one)"
                raise CellError(position, f"{error}{contrast}") from error
    return tuple(tags if scheme is None else convert(tags, scheme))


def tags_of_lines(
    tags: Sequence[str],
    scheme: Scheme | None,
    *,
    path: Path,
    lines: Sequence[int],
    are_spans: bool = False,
) -> tuple[str, ...]:
    """Apply `tags_in_scheme` to tags on separate lines.

    Args:
        tags: see `tags_in_scheme`.
        scheme: see `tags_in_scheme`.
        path: the file of the tags.
        lines: the line of each tag.
        are_spans: see `tags_in_scheme`.

    Raises:
        DataError: one of them is not a span tag.
    """
    try:
        return tags_in_scheme(tags, scheme, are_spans=are_spans)
    except CellError as error:
        raise DataError(str(error), path=path, line=lines[error.position]) from error
