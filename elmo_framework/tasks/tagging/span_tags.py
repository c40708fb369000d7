"""Tags of spans, checked where they are read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from elmo_framework.data.formats.columns import CellError
from elmo_framework.data.tagging import Scheme, beginnings, convert, parse_tag
from elmo_framework.errors import DataError


def tags_in_scheme(
    tags: Sequence[str], scheme: Scheme | None, *, are_spans: bool = False
) -> tuple[str, ...]:
    """Return the tags of a sentence in a scheme; as they are when it is None.

    Args:
        tags: in any scheme; where none is wanted, they may stand for no spans, but not some of
            them, as the middle of a span that has another name would be outside of it.
        scheme: in which they are wanted.
        are_spans: whether tags that stand for no spans are refused in any case.

    Raises:
        CellError: one of them is not a span tag.
    """
    one_of_span = next(beginnings(tags), None)
    if are_spans or scheme is not None or one_of_span is not None:
        for position, tag in enumerate(tags):
            try:
                parse_tag(tag)
            except ValueError as error:
                beside = "" if one_of_span is None else f" ({one_of_span!r} beside it is one)"
                raise CellError(position, f"{error}{beside}") from error
    return tuple(tags if scheme is None else convert(tags, scheme))


def tags_of_lines(
    tags: Sequence[str],
    scheme: Scheme | None,
    *,
    path: Path,
    lines: Sequence[int],
    are_spans: bool = False,
) -> tuple[str, ...]:
    """Return what `tags_in_scheme` does for tags each of which has a line of its own.

    Args:
        tags: of a sentence.
        scheme: in which they are wanted.
        path: the file that they stand in.
        lines: the line of each tag.
        are_spans: whether tags that stand for no spans are refused in any case.

    Raises:
        DataError: one of them is not a span tag.
    """
    try:
        return tags_in_scheme(tags, scheme, are_spans=are_spans)
    except CellError as error:
        raise DataError(str(error), path=path, line=lines[error.position]) from error
