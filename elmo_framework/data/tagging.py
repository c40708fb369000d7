"""Spans written as tags, one a word: IOB1, BIO (also called IOB2), BIOUL and BIOES.

In every scheme `O` is outside, and a tag with a label is a prefix, a hyphen and the label:

* IOB1: `I` is inside; `B` begins a span directly after another one with the same label.
* BIO: `B` begins every span, `I` goes on.
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

Scheme: TypeAlias = Literal["IOB1", "BIO", "BIOUL", "BIOES"]

_PREFIXES: dict[Scheme, str] = {"IOB1": "OIB", "BIO": "OBI", "BIOUL": "OBIUL", "BIOES": "OBISE"}
_ENDS: dict[Scheme, tuple[str, str]] = {"BIOUL": ("U", "L"), "BIOES": ("S", "E")}
"""What the schemes that mark ends have for a span of one word, and for the last word of others."""

_FIRST: dict[Scheme, str] = {"IOB1": "I", "BIO": "B", "BIOUL": "BU", "BIOES": "BS"}
"""How a span begins that does not follow another one with its label."""

_TAG = re.compile("([BIULSE])-(.+)", re.DOTALL)


class LabeledSpan(NamedTuple):
    """Words that belong together: from `start` to before `end`."""

    start: int
    end: int
    label: str


class Tag(NamedTuple):
    """A tag in its two parts; the label of `O` is empty."""

    prefix: str
    label: str


_OUTSIDE = Tag("O", "")


class AllowedTransitions(NamedTuple):
    """Which tags may stand where.

    Attributes:
        start: true for a tag that may come first.
        inner: true where the tag of the row may be followed by the tag of the column.
        end: true for a tag that may come last.
    """

    start: Bool[np.ndarray, " tags"]
    inner: Bool[np.ndarray, "tags tags"]
    end: Bool[np.ndarray, " tags"]


def parse_tag(tag: str) -> Tag:
    """Take a tag apart.

    Raises:
        ValueError: it is a tag of no scheme.
    """
    if tag == "O":
        return _OUTSIDE
    match = _TAG.fullmatch(tag)
    if match is None:
        allowed = "O, or one of B, I, L, U, E and S with a hyphen and a label, as B-PER"
        raise ValueError(f"{tag!r} is no tag of a span; allowed: {allowed}")
    return Tag(match[1], match[2])


def spans(tags: Sequence[str]) -> list[LabeledSpan]:
    """Return the spans that tags of any scheme stand for, in order.

    Sequences that break the rules of their scheme are read as the CoNLL scorer reads them: a
    span begins wherever the label changes, ends before whatever cannot go on with it, and
    what is no tag of a span is outside.
    """
    found: list[LabeledSpan] = []
    start, previous = 0, _OUTSIDE
    for position, tag in enumerate([*map(_tag_or_outside, tags), _OUTSIDE]):
        is_new = _begins(tag, previous)
        if previous != _OUTSIDE and (is_new or tag == _OUTSIDE):
            found.append(LabeledSpan(start, position, previous.label))
        if is_new:
            start = position
        previous = tag
    return found


def span_objects(tags: Sequence[str], words: Sequence[str]) -> list[dict[str, Any]]:
    """Return the spans that tags stand for as JSON objects, each with its `text`."""
    return [
        {**span._asdict(), "text": " ".join(words[span.start : span.end])} for span in spans(tags)
    ]


def convert(tags: Sequence[str], scheme: Scheme) -> list[str]:
    """Write tags of any scheme in another one.

    Raises:
        ValueError: one of them is a tag of no scheme.
    """
    for tag in tags:
        parse_tag(tag)
    written = ["O"] * len(tags)
    previous: LabeledSpan | None = None
    for span in spans(tags):
        is_adjoining = previous is not None and previous[1:] == (span.start, span.label)
        prefixes = _prefixes(span.end - span.start, scheme, is_adjoining=is_adjoining)
        written[span.start : span.end] = [f"{prefix}-{span.label}" for prefix in prefixes]
        previous = span
    return written


def conlleval_tags(tags: Sequence[str]) -> list[str]:
    """Return tags as the scorer of CoNLL-2000 to 2003 reads them.

    Tags of BIOUL and BIOES, which it does not know, are written in BIO; others stay as they are,
    broken sequences included.
    """
    return convert(tags, "BIO") if scheme_of(tags, {}) in _ENDS else list(tags)


def beginnings(tags: Iterable[str]) -> Iterator[str]:
    """Yield the tags that begin a span which does not follow another one with its label.

    Such a span begins with `I` in IOB1 and with `B` in BIO, which their sets of tags do not tell.
    """
    previous = _OUTSIDE
    for tag in tags:
        parsed = _tag_or_outside(tag)
        if parsed.label not in ("", previous.label):
            yield tag
        previous = parsed


def scheme_of(tags: Iterable[str], begun: Mapping[str, int]) -> Scheme | None:
    """Tell the scheme of a set of tags; None when they are of none.

    Args:
        tags: each once or more.
        begun: how often each of them is one of the `beginnings`; IOB1 is told from BIO by what
            most of them are, so that a mistyped tag is outnumbered.
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
    """Return those of the `beginnings` that a scheme does not have there, in order."""
    return sorted(tag for tag in begun if parse_tag(tag).prefix not in _FIRST[scheme])


def all_tags(tags: Iterable[str], scheme: Scheme) -> set[str]:
    """Return every tag that a scheme has for the labels of some tags."""
    labels = {parse_tag(tag).label for tag in tags} - {""}
    prefixes = _PREFIXES[scheme].replace("O", "")
    return {"O", *(f"{prefix}-{label}" for prefix in prefixes for label in labels)}


def allowed_transitions(tags: Sequence[str], scheme: Scheme) -> AllowedTransitions:
    """Return which of the tags may follow which in a sentence of a scheme.

    Raises:
        ValueError: one of them is no tag of the scheme.
    """
    parsed = [parse_tag(tag) for tag in tags]
    for tag in parsed:
        if tag.prefix not in _PREFIXES[scheme]:
            raise ValueError(
                f"{'-'.join(tag)!r} is no tag of the scheme {scheme}; "
                f"allowed prefixes: {', '.join(_PREFIXES[scheme])}"
            )
    # What may come first may follow O, and what may come last may be followed by O.
    bounded = [_OUTSIDE, *parsed]
    table = np.array(
        [[_may_follow(tag, previous, scheme) for tag in bounded] for previous in bounded]
    )
    return AllowedTransitions(start=table[0, 1:], inner=table[1:, 1:], end=table[1:, 0])


def _tag_or_outside(tag: str) -> Tag:
    match = _TAG.fullmatch(tag)
    return _OUTSIDE if match is None else Tag(match[1], match[2])


def _begins(tag: Tag, previous: Tag) -> bool:
    """Tell whether a span begins, by the rules of conlleval, with U as S and L as E."""
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
