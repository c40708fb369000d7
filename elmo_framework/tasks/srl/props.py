"""Predictions in the columns that `srl-eval.pl` reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from elmo_framework.data.columns import one_cell
from elmo_framework.tasks.srl.brackets import cells_of
from elmo_framework.tasks.srl.example import Proposition, SrlExample

_NONE = "-"


def predicted_props(
    predictions: Iterable[tuple[Sequence[Proposition], SrlExample]],
) -> Iterator[str]:
    """Write what was predicted: for each sentence its predicates, and the arguments of each.

    Examples that follow each other and are of one sentence make one block, as in the columns of a
    corpus, which the scorer can then compare these with.
    """
    words: tuple[str, ...] | None = None
    propositions: list[Proposition] = []
    for found, example in predictions:
        # Not by equality: a text may hold the same sentence twice in a row.
        if words is not None and example.words is not words:
            yield _block(words, propositions)
            propositions = []
        words = example.words
        propositions += found
    if words is not None:
        yield _block(words, propositions)


def gold_props(predictions: Iterable[tuple[object, SrlExample]]) -> Iterator[str]:
    """Write what is known of the same examples, so that the scorer has both files."""
    yield from predicted_props((example.propositions or (), example) for _, example in predictions)


def _block(words: Sequence[str], propositions: Sequence[Proposition]) -> str:
    """Return a line a word: the word if it is a predicate, and its cell in each column."""
    tags = {place: tags for place, tags in propositions if place is not None}
    names = [_name(word) if place in tags else _NONE for place, word in enumerate(words)]
    columns = [names, *(cells_of(tags[place]) for place in sorted(tags))]
    rows = ["\t".join(map(one_cell, row)) for row in zip(*columns, strict=True)]
    return "\n".join([*rows, "", ""])


def _name(word: str) -> str:
    """Return how a predicate is written: never as what stands for none."""
    return "_" if word == _NONE else word
