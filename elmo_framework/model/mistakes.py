"""Wrong predictions in their texts, for reports."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Literal, NamedTuple, TypeAlias

from elmo_framework.data.annotation import Annotation

Mark: TypeAlias = Literal["", "right", "missed", "extra", "wrong"]


class Piece(NamedTuple):
    """A piece of a text.

    Attributes:
        text: of the piece, with the spaces around it.
        mark: `missed` if only the gold data mark it, `extra` if only the prediction does, `right`
            if both do alike, and `wrong` if they differ.
        label: of the mark: that of the gold data, then that of the prediction where they differ.
    """

    text: str
    mark: Mark = ""
    label: str = ""


@dataclass(frozen=True)
class Mistake:
    """A wrong prediction in its text.

    Attributes:
        weight: how wrong it is: the loss of a label, the number of wrong spans, or the part of an
            answer that is missing. A report shows the heaviest first.
        summary: what is right, and what was predicted; empty if the marks show it.
        pieces: the text.
    """

    weight: float
    summary: str
    pieces: Sequence[Piece]


def span_pieces(
    words: Sequence[str], gold: Collection[Annotation], predicted: Collection[Annotation]
) -> list[Piece]:
    """Mark the words of a sentence by gold and predicted spans, which do not overlap each other."""
    gold_at, predicted_at = (
        {place: span for span in spans for place in range(span.start, span.end)}
        for spans in (gold, predicted)
    )
    places = [(gold_at.get(place), predicted_at.get(place)) for place in range(len(words))]
    return [
        Piece(" ".join(words[place] for place in run) + " ", *_mark(*spans))
        for spans, run in groupby(range(len(words)), key=places.__getitem__)
    ]


def interval_pieces(
    text: str, gold: tuple[int, int] | None, predicted: tuple[int, int] | None
) -> list[Piece]:
    """Mark the characters of a text by a gold and a predicted interval, `end` exclusive."""
    return [*_interval_pieces(text, gold or (0, 0), predicted or (0, 0))]


def _interval_pieces(
    text: str, gold: tuple[int, int], predicted: tuple[int, int]
) -> Iterator[Piece]:
    ends = sorted({0, len(text), *gold, *predicted})
    for start, end in pairwise(ends):
        is_gold, is_predicted = (low <= start and end <= high for low, high in (gold, predicted))
        mark: Mark = "right" if is_gold and is_predicted else "missed" if is_gold else ""
        yield Piece(text[start:end], mark or ("extra" if is_predicted else ""))


def _mark(gold: Annotation | None, predicted: Annotation | None) -> tuple[Mark, str]:
    if gold is None or predicted is None:
        if span := gold or predicted:
            return ("missed" if span is gold else "extra"), span.label
        return "", ""
    if gold == predicted:
        return "right", gold.label
    labels = dict.fromkeys((gold.label, predicted.label))
    return "wrong", " \N{RIGHTWARDS ARROW} ".join(labels)
