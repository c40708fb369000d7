"""Write predictions in the format of the official scorer, and as colored text."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate

from rich.text import Text

from elmo_framework.data.formats.columns import one_cell
from elmo_framework.data.highlighting import COLORS
from elmo_framework.errors import DataError
from elmo_framework.metrics.coreference import Resolution
from elmo_framework.tasks.coreference.brackets import Bracketed, encode
from elmo_framework.tasks.coreference.example import Document, lengths

# The columns between word and speaker, and between speaker and mentions.
_BEFORE_SPEAKER, _AFTER_SPEAKER = ("-", "*", "-", "-", "-"), ("*",)


def conll2012(predictions: Iterable[tuple[Resolution, Document]]) -> Iterator[str]:
    """Write the columns of CoNLL-2012, the predicted clusters in the last.

    The name and the part of each document are unchanged, so that the scorer finds the
    document in the gold file. Without a name it gets its number among the documents: `-_1` is
    the first.

    Raises:
        DataError: two documents have the same name and part, so the scorer would find only one.
    """
    seen: set[str] = set()
    for number, (resolution, original) in enumerate(predictions, start=1):
        document = original if original.key else replace(original, key=f"-_{number}")
        part = "" if document.part is None else f"; part {document.part}"
        name = f"({document.key}){part}"
        if name in seen:
            raise DataError(f"two documents have the name {name}; names must be unique")
        seen.add(name)
        yield f"#begin document {name}\n"
        for row, mentions in enumerate(_by_sentence(resolution, document)):
            yield "".join(_lines(document, row, mentions)) + "\n"
        yield "#end document\n"


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
    firsts = list(accumulate(lengths(document.sentences), initial=0))[:-1]
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
