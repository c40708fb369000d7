"""Predicted tags as the scorer of CoNLL-2000 to 2003 reads them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from elmo_framework.data.formats.columns import one_cell
from elmo_framework.data.tagging import conlleval_tags
from elmo_framework.tasks.tagging.example import TaggedSentence


def conll_columns(
    predictions: Iterable[tuple[Sequence[str], TaggedSentence]],
) -> Iterator[str]:
    """Write a word a line with its gold tag and the predicted one, a blank line after a sentence.

    conlleval's figures of this file are those of `SpanF1`. Of a sentence without gold tags only the
    words and the predicted tags are written.
    """
    for tags, example in predictions:
        gold = [] if example.tags is None else [conlleval_tags(example.tags)]
        rows = zip(example.words, *gold, conlleval_tags(tags), strict=True)
        yield "".join(f"{' '.join(map(one_cell, row))}\n" for row in rows) + "\n"
