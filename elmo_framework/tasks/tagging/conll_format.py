"""Predicted tags as the scorer of CoNLL-2000 to 2003 reads them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from elmo_framework.data.tagging import convert, scheme_of
from elmo_framework.tasks.tagging.example import TaggedSentence


def conll_columns(
    predictions: Iterable[tuple[Sequence[str], TaggedSentence]],
) -> Iterator[str]:
    """Write a word a line with its gold tag and the predicted one, a blank line after a sentence.

    Tags of BIOUL, which conlleval does not know, are written in BIO; others stay as they are,
    broken sequences included, so that its figures are those of `SpanF1`. Of a sentence without
    gold tags only the words and the predicted tags are written.
    """
    for tags, example in predictions:
        columns = [[_joined(word) for word in example.words]]
        columns += [] if example.tags is None else [_readable(example.tags)]
        columns.append(_readable(tags))
        yield "".join(f"{' '.join(row)}\n" for row in zip(*columns, strict=True)) + "\n"


def _readable(tags: Sequence[str]) -> list[str]:
    return convert(tags, "BIO") if scheme_of(tags) == "BIOUL" else list(tags)


def _joined(word: str) -> str:
    """Return a word without spaces, which would begin another column."""
    return "_".join(word.split()) or "_"
