"""Tagging schemes for spans: IOB1, BIO (also called IOB2), BIOUL and BIOES.

In every scheme `O` is outside, and a tag with a label is a prefix, a hyphen and the label, which
does not begin with a hyphen: positional parts of speech such as `S----3MS2-` do not mark spans.

* IOB1: `I` is inside; `B` begins a span directly after another one with the same label.
* BIO: `B` begins every span, `I` continues it.
* BIOUL: as BIO, but `L` is the last word of a span, and `U` a span of one word.
* BIOES (also called IOBES): as BIOUL, with `E` for `L` and `S` for `U`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Bool

from elmo_framework.data.annotation import Annotation
from elmo_framework.data.formats.columns import CellError

Scheme: TypeAlias = Literal["IOB1", "BIO", "BIOUL", "BIOES"]

_PREFIXES: dict[Scheme, str] = {"IOB1": "OIB", "BIO": "OBI", "BIOUL": "OBIUL", "BIOES": "OBISE"}
_ENDS: dict[Scheme, tuple[str, str]] = {"BIOUL": ("U", "L"), "BIOES": ("S", "E")}
"""In schemes that mark ends, the prefixes of a one-word span and of the last word of others."""

_FIRST: dict[Scheme, str] = {"IOB1": "I", "BIO": "B", "BIOUL": "BU", "BIOES": "BS"}
"""The prefixes that begin a span which does not follow another one with the same label."""

_TAG = re.compile("([BIULSE])-([^-].*)", re.DOTALL)


class LabeledSpan(NamedTuple):
    """The words from `start` to `end` (exclusive)."""

    start: int
    end: int
    label: str


class Tag(NamedTuple):
    """A parsed tag; the label of `O` is empty."""

    prefix: str
    label: str


_OUTSIDE = Tag("O", "")


def parse_tag(tag: str) -> Tag:
    """Parse a tag.

    Raises:
        ValueError: it does not belong to any scheme.
    """
    if tag == "O":
        return _OUTSIDE
    match = _TAG.fullmatch(tag)
    if match is None:
        allowed = "O, or one of B, I, L, U, E and S with a hyphen and a label, as B-PER"
        raise ValueError(f"{tag!r} is not a span tag; allowed: {allowed}")
    return Tag(match[1], match[2])


def spans(tags: Sequence[str]) -> list[LabeledSpan]:
    """Return the spans of tags in any scheme, in order.

    Invalid sequences are read as the CoNLL scorer reads them: a span begins wherever the label
    changes, ends before a tag that cannot continue it, and an invalid tag is outside.
    """
    labeled: list[LabeledSpan] = []
    start, previous = 0, _OUTSIDE
    for position, tag in enumerate([*map(_tag_or_outside, tags), _OUTSIDE]):
        is_new = _begins(tag, previous)
        if previous != _OUTSIDE and (is_new or tag == _OUTSIDE):
            labeled.append(LabeledSpan(start, position, previous.label))
        if is_new:
            start = position
        previous = tag
    return labeled


def span_objects(tags: Sequence[str], words: Sequence[str]) -> list[dict[str, Any]]:
    """Return the spans of tags as JSON objects with their `text`."""
    return [
        {**span._asdict(), "text": " ".join(words[span.start : span.end])} for span in spans(tags)
    ]


def tag_annotations(tags: Sequence[str]) -> list[Annotation]:
    """Return the spans of tags; the words with their tags where these do not mark spans."""
    if marks_spans(tags):
        return [Annotation(*span) for span in spans(tags)]
    return [Annotation(place, place + 1, tag) for place, tag in enumerate(tags)]


def marks_spans(tags: Sequence[str]) -> bool:
    """Return whether each tag is that of a word inside or outside a span."""
    return all(tag == "O" or _TAG.fullmatch(tag) for tag in tags)


def convert(tags: Sequence[str], scheme: Scheme) -> list[str]:
    """Convert tags of any scheme to another one.

    Raises:
        ValueError: a tag does not belong to any scheme.
    """
    for tag in tags:
        parse_tag(tag)
    converted = ["O"] * len(tags)
    previous: LabeledSpan | None = None
    for span in spans(tags):
        is_adjoining = previous is not None and previous[1:] == (span.start, span.label)
        prefixes = _prefixes(span.end - span.start, scheme, is_adjoining=is_adjoining)
        converted[span.start : span.end] = [f"{prefix}-{span.label}" for prefix in prefixes]
        previous = span
    return converted


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


def conlleval_tags(tags: Sequence[str], others: Sequence[str] = ()) -> list[str]:
    """Return tags for the scorer of CoNLL-2000 to 2003.

    Tags of BIOUL and BIOES, which it does not support, are converted to BIO; others, including
    invalid sequences, are unchanged.

    Args:
        tags: of a sentence.
        others: that they are compared with; they show the scheme too.
    """
    is_converted = scheme_of([*tags, *others], {}) in _ENDS
    return convert(tags, "BIO") if is_converted else list(tags)


def beginnings(tags: Iterable[str]) -> Iterator[str]:
    """Yield the tags that begin a span which does not follow another one with the same label.

    They distinguish IOB1 (`I`) from BIO (`B`), which have the same set of tags.
    """
    previous = _OUTSIDE
    for tag in tags:
        parsed = _tag_or_outside(tag)
        if parsed.label not in ("", previous.label):
            yield tag
        previous = parsed


def scheme_of(tags: Iterable[str], begun: Mapping[str, int]) -> Scheme | None:
    """Return the scheme of tags, or None if they belong to no scheme.

    Args:
        tags: each once or more.
        begun: the counts of their `beginnings`; the majority distinguishes IOB1 from BIO, so that
            a mistyped tag does not matter.
    """
    try:
        prefixes = {parse_tag(tag).prefix for tag in tags}
    except ValueError:
        return None
    for scheme, ends in _ENDS.items():
        if prefixes.intersection(ends):
            return scheme if prefixes <= set(_PREFIXES[scheme]) else None
    numbers = Counter[str]()
    for tag, number in begun.items():
        numbers[parse_tag(tag).prefix] += number
    return "IOB1" if numbers["I"] > numbers["B"] else "BIO"


def strays(begun: Mapping[str, int], scheme: Scheme) -> list[str]:
    """Return the `beginnings` that are invalid in a scheme, sorted."""
    return sorted(tag for tag in begun if parse_tag(tag).prefix not in _FIRST[scheme])


def all_tags(tags: Iterable[str], scheme: Scheme) -> set[str]:
    """Return all tags of a scheme for the labels of `tags`."""
    labels = {parse_tag(tag).label for tag in tags} - {""}
    prefixes = _PREFIXES[scheme].replace("O", "")
    return {"O", *(f"{prefix}-{label}" for prefix in prefixes for label in labels)}


def allowed_transitions(
    tags: Sequence[str], scheme: Scheme
) -> tuple[Bool[np.ndarray, " tags"], Bool[np.ndarray, "tags tags"], Bool[np.ndarray, " tags"]]:
    """Return the valid transitions between tags in a scheme.

    Returns:
        true for each tag that may be the first; true where the tag of the column may follow the
        tag of the row; true for each tag that may be the last.

    Raises:
        ValueError: a tag does not belong to the scheme.
    """
    parsed = [parse_tag(tag) for tag in tags]
    for tag in parsed:
        if tag.prefix not in _PREFIXES[scheme]:
            raise ValueError(
                f"{'-'.join(tag)!r} is not a tag of the scheme {scheme}; "
                f"allowed prefixes: {', '.join(_PREFIXES[scheme])}"
            )
    # A tag may be the first if it may follow O, and the last if O may follow it.
    bounded = [_OUTSIDE, *parsed]
    table = np.array(
        [[_may_follow(tag, previous, scheme) for tag in bounded] for previous in bounded]
    )
    return table[0, 1:], table[1:, 1:], table[1:, 0]


def label_of(tag: str) -> str:
    """Return the label of the span that a tag is inside of; empty if it is outside."""
    return _tag_or_outside(tag).label


def continuations(tags: Sequence[str]) -> Bool[np.ndarray, "tags tags"]:
    """Return where the tag of the column continues the span of the tag of the row; see `spans`."""
    parsed = [*map(_tag_or_outside, tags)]
    return np.array(
        [[tag != _OUTSIDE and not _begins(tag, previous) for tag in parsed] for previous in parsed]
    )


def _tag_or_outside(tag: str) -> Tag:
    match = _TAG.fullmatch(tag)
    return _OUTSIDE if match is None else Tag(match[1], match[2])


def _begins(tag: Tag, previous: Tag) -> bool:
    """Return whether a span begins, by the rules of conlleval, with U as S and L as E."""
    if tag == _OUTSIDE:
        return False
    return tag.prefix in "BUS" or previous.prefix in "OULSE" or tag.label != previous.label


def _prefixes(length: int, scheme: Scheme, *, is_adjoining: bool) -> str:
    if scheme in _ENDS:
        only, last = _ENDS[scheme]
        return only if length == 1 else "B" + "I" * (length - 2) + last
    is_marked = scheme == "BIO" or is_adjoining
    return ("B" if is_marked else "I") + "I" * (length - 1)


def _may_follow(tag: Tag, previous: Tag, scheme: Scheme) -> bool:
    is_same = tag.label == previous.label
    if scheme == "IOB1":
        return tag.prefix != "B" or is_same
    if scheme == "BIO":
        return tag.prefix != "I" or is_same
    is_open = previous.prefix in "BI"
    return is_open == (tag.prefix in "ILE") and (is_same or not is_open)
