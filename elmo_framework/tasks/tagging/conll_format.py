"""Write predicted tags in the format of conlleval, the scorer of CoNLL-2000 to 2003."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from elmo_framework.data.formats.columns import one_cell
from elmo_framework.data.tagging import conlleval_tags
from elmo_framework.tasks.tagging.example import TaggedSentence


def conll_columns(
    predictions: Iterable[tuple[Sequence[str], TaggedSentence]],
) -> Iterator[str]:
    """Write lines of word, gold tag and predicted tag, with a blank line after each sentence.

    conlleval's scores of this file equal those of `SpanF1`. For a sentence without gold tags only
    the words and the predicted tags are written.
    """
    for tags, example in predictions:
        gold = [] if example.tags is None else [conlleval_tags(example.tags)]
        rows = zip(example.words, *gold, conlleval_tags(tags), strict=True)
        yield "".join(f"{' '.join(map(one_cell, row))}\n" for row in rows) + "\n"
