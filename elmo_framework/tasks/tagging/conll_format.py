"""Predicted tags as the scorer of CoNLL-2000 to 2003 reads them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from elmo_framework.data.columns import one_cell
from elmo_framework.data.tagging import MARKING_ENDS, convert, scheme_of
from elmo_framework.tasks.tagging.example import TaggedSentence


def conll_columns(
    predictions: Iterable[tuple[Sequence[str], TaggedSentence]],
) -> Iterator[str]:
    """Write a word a line with its gold tag and the predicted one, a blank line after a sentence.

    Tags of BIOUL and BIOES, which conlleval does not know, are written in BIO; others stay as they
    are, broken sequences included, so that its figures of spans are those of `SpanF1`. Of a
    sentence without gold tags only the words and the predicted tags are written.
    """
    for tags, example in predictions:
        gold = [] if example.tags is None else [_readable(example.tags)]
        rows = zip(example.words, *gold, _readable(tags), strict=True)
        yield "".join(f"{' '.join(map(one_cell, row))}\n" for row in rows) + "\n"


def _readable(tags: Sequence[str]) -> list[str]:
    return convert(tags, "BIO") if scheme_of(tags, {}) in MARKING_ENDS else list(tags)
