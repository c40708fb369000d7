"""Parse the last column of CoNLL-2012 files: `(3` begins a mention of 3, `3)` ends it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from elmo_framework.data.formats.columns import CellError

# OntoNotes writes '-', and the official scorer supports '_'; LitBank leaves the cell empty.
_NOTHING = ("-", "_", "")
_PIECE = re.compile(r"(\()?([^()|]+)(\))?")


class Bracketed(NamedTuple):
    """One mention in a sentence: its entity, its first and its last word."""

    entity: str
    start: int
    end: int


def decode(cells: Sequence[str]) -> list[Bracketed]:
    """Return the mentions of a sentence, in the order in which they end.

    All openings of a cell count before its closings, as in the official scorer, so that `(3|3)`
    and `3)|(3` are a mention of one word. The last opened bracket of an entity is closed first.
    Crossing mentions of one entity can therefore not be written.

    Raises:
        CellError: a cell is malformed, or a bracket has no partner.
    """
    opened: defaultdict[str, list[int]] = defaultdict(list)
    mentions: list[Bracketed] = []
    for index, cell in enumerate(cells):
        for opens, entity, closes in sorted(_pieces(cell, index), key=_is_closing):
            if opens and not closes:
                opened[entity].append(index)
            else:
                start = index if opens else _opened(opened[entity], entity, index)
                mentions.append(Bracketed(entity, start, index))
    for entity, starts in opened.items():
        if starts:
            raise CellError(starts[-1], f"'({entity}' is not closed in its sentence")
    return mentions


def encode(mentions: Iterable[Bracketed], num_words: int) -> list[str]:
    """Write the mentions of a sentence as a cell for each word."""
    opening: list[list[str]] = [[] for _ in range(num_words)]
    closing: list[list[str]] = [[] for _ in range(num_words)]
    for entity, start, end in sorted(mentions, key=lambda mention: (mention.start, -mention.end)):
        if start == end:
            opening[start].append(f"({entity})")
        else:
            opening[start].append(f"({entity}")
            closing[end].append(f"{entity})")
    cells = map(list.__add__, opening, closing)
    return ["|".join(pieces) or _NOTHING[0] for pieces in cells]


def _pieces(cell: str, index: int) -> Iterator[tuple[bool, str, bool]]:
    """Yield the pieces of a cell: whether it opens, the entity, whether it closes."""
    for piece in () if cell in _NOTHING else cell.split("|"):
        match = _PIECE.fullmatch(piece)
        if match is None or not (match[1] or match[3]):
            expected = "expected pieces such as '(3', '3)' and '(3)' with '|' between, or '-'"
            raise CellError(index, f"found {cell!r}, {expected}")
        yield bool(match[1]), match[2], bool(match[3])


def _is_closing(piece: tuple[bool, str, bool]) -> bool:
    opens, _, _ = piece
    return not opens


def _opened(starts: list[int], entity: str, index: int) -> int:
    if not starts:
        raise CellError(index, f"{entity!r} is closed but was not opened")
    return starts.pop()
