"""Read and write the last column of CoNLL-2012: `(3` begins a mention of 3, `3)` ends it.

Predictions are written as all columns of the official scorer, and as colored text.
"""

from __future__ import annotations

import logging
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from rich.text import Text

from elmo_framework.console import plural
from elmo_framework.data.formats.columns import CellError, one_cell
from elmo_framework.data.highlighting import COLORS
from elmo_framework.errors import DataError
from elmo_framework.metrics.coreference import Resolution
from elmo_framework.tasks.coreference.example import Document

_log = logging.getLogger(__name__)

# OntoNotes writes '-', and the official scorer supports '_'; LitBank leaves the cell empty.
_NOTHING = ("-", "_", "")
_PIECE = re.compile(r"(\()?([^()|]+)(\))?")
# The columns between word and speaker, and between speaker and mentions.
_BEFORE_SPEAKER, _AFTER_SPEAKER = ("-", "*", "-", "-", "-"), ("*",)


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
        openings_first = sorted(_pieces(cell, index), key=lambda piece: not piece[0])
        for opens, entity, closes in openings_first:
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
    """Write the mentions of a sentence, of which no two of one entity cross, as a cell per word."""
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


def without_crossings(mentions: Iterable[Bracketed]) -> list[Bracketed]:
    """Return the mentions that cross no earlier one of their entity, in the order of `encode`.

    Mentions cross if one begins within another, or at its last word, and ends after it: the last
    opened bracket is closed first, so the two would be read with their ends exchanged.
    """
    kept: list[Bracketed] = []
    for each in sorted(mentions, key=lambda mention: (mention.start, -mention.end)):
        same = (other for other in kept if other.entity == each.entity)
        if not any(other.start < each.start <= other.end < each.end for other in same):
            kept.append(each)
    return kept


def _pieces(cell: str, index: int) -> Iterator[tuple[bool, str, bool]]:
    """Yield the pieces of a cell: whether it opens, the entity, whether it closes."""
    for piece in () if cell in _NOTHING else cell.split("|"):
        match = _PIECE.fullmatch(piece)
        if match is None or not (match[1] or match[3]):
            expected = "expected pieces such as '(3', '3)' and '(3)' with '|' between, or '-'"
            raise CellError(index, f"found {cell!r}, {expected}")
        yield bool(match[1]), match[2], bool(match[3])


def _opened(starts: list[int], entity: str, index: int) -> int:
    if not starts:
        raise CellError(index, f"{entity!r} is closed but was not opened")
    return starts.pop()


def conll2012(predictions: Iterable[tuple[Resolution, Document]]) -> Iterator[str]:
    """Write the columns of CoNLL-2012, the predicted clusters in the last.

    The name and the part of each document are unchanged, so that the scorer finds the
    document in the gold file. Without a name it gets its number among the documents: `-_1` is
    the first. A mention that crosses an earlier one of its cluster is left out, with a warning.

    Raises:
        DataError: two documents have the same name and part, so the scorer would find only one.
    """
    seen: set[str] = set()
    num_crossing = 0
    for number, (resolution, original) in enumerate(predictions, start=1):
        document = original if original.key else replace(original, key=f"-_{number}")
        part = "" if document.part is None else f"; part {document.part}"
        name = f"({document.key}){part}"
        if name in seen:
            raise DataError(f"two documents have the name {name}; names must be unique")
        seen.add(name)
        yield f"#begin document {name}\n"
        for row, mentions in enumerate(_by_sentence(resolution, document)):
            kept = without_crossings(mentions)
            num_crossing += len(mentions) - len(kept)
            yield "".join(_lines(document, row, kept)) + "\n"
        yield "#end document\n"
    if num_crossing:
        left_out = plural(num_crossing, "mention")
        reason = "crossing another one of their cluster, which CoNLL-2012 cannot represent"
        _log.warning("left out %s %s", left_out, reason)


def colored(resolution: Resolution, document: Document) -> Text:
    """Write a document with brackets around its mentions, one sentence per line.

    The number after each mention, and its color, identify its cluster.
    """
    text = Text()
    for words, mentions in zip(document.sentences, _by_sentence(resolution, document), strict=True):
        _append(text, words, mentions)
        text.append("\n")
    return text


def _by_sentence(resolution: Resolution, document: Document) -> list[list[Bracketed]]:
    """Return the mentions in each sentence, each with the number of its cluster."""
    firsts = document.offsets
    rows: list[list[Bracketed]] = [[] for _ in firsts]
    for number, cluster in enumerate(resolution.clusters):
        for start, end in cluster:
            row = bisect_right(firsts, start) - 1
            rows[row].append(Bracketed(str(number), start - firsts[row], end - firsts[row]))
    return rows


def _lines(document: Document, row: int, mentions: Iterable[Bracketed]) -> Iterator[str]:
    words = document.sentences[row]
    speakers = ["-"] * len(words) if document.speakers is None else document.speakers[row]
    cells = encode(mentions, len(words))
    for number, (word, speaker, cell) in enumerate(zip(words, speakers, cells, strict=True)):
        place = (one_cell(document.key), str(int(document.part or 0)), str(number))
        columns = (one_cell(word), *_BEFORE_SPEAKER, one_cell(speaker), *_AFTER_SPEAKER)
        yield "\t".join((*place, *columns, cell)) + "\n"


def _append(text: Text, words: Sequence[str], mentions: Iterable[Bracketed]) -> None:
    styles = [""] * len(words)
    opening: defaultdict[int, list[str]] = defaultdict(list)
    closing: defaultdict[int, list[str]] = defaultdict(list)
    for entity, start, end in sorted(mentions, key=lambda mention: mention.start - mention.end):
        styles[start : end + 1] = [_style(entity)] * (end + 1 - start)
        opening[start].append(entity)
        closing[end].insert(0, entity)
    for number, word in enumerate(words):
        text.append(" " if number else "")
        for entity in opening[number]:
            text.append("[", _style(entity))
        text.append(word, styles[number])
        for entity in closing[number]:
            text.append(f"]{entity}", _style(entity))


def _style(entity: str) -> str:
    return COLORS[int(entity) % len(COLORS)]
