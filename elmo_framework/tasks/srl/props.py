"""Predictions, and what is known, in the columns that `srl-eval.pl` reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from elmo_framework.data.formats.columns import one_cell
from elmo_framework.data.labels import excerpt
from elmo_framework.errors import DataError
from elmo_framework.tasks.srl.brackets import cells_of
from elmo_framework.tasks.srl.example import Proposition, SrlExample

_NONE = "-"


def known_propositions(example: SrlExample) -> tuple[Proposition, ...]:
    """Return the propositions of an example.

    Raises:
        DataError: they are not known.
    """
    if example.propositions is None:
        sentence = excerpt(example.words)
        raise DataError(f"a sentence without arguments cannot be scored: {sentence}")
    return example.propositions


def predicted_props(
    predictions: Iterable[tuple[Sequence[Proposition], SrlExample]],
) -> Iterator[str]:
    """Write what was predicted: for each sentence its predicates, and the arguments of each.

    The first column names each predicate as the corpus does, by its lemma or its sense; by its word
    where the corpus has no such column. The scorer counts all arguments of a predicate as missed
    whose name differs.

    Examples that follow each other and are of one sentence make one block, as in the columns of a
    corpus, which the scorer can then compare these with. It would stop at a sentence without words,
    so none is written.

    Raises:
        DataError: a word of a sentence has two predicates whose arguments differ.
    """
    sentence: SrlExample | None = None
    propositions: list[Proposition] = []
    for predicted, example in predictions:
        # Not by equality: a text may hold the same sentence twice in a row.
        if sentence is not None and example.words is not sentence.words:
            yield from _block(sentence, propositions)
            propositions = []
        sentence = example
        propositions += predicted
    if sentence is not None:
        yield from _block(sentence, propositions)


def gold_props(predictions: Iterable[tuple[object, SrlExample]]) -> Iterator[str]:
    """Write what is known of the same examples, so that the scorer has both files.

    Raises:
        DataError: nothing is known of one, or it cannot be written.
    """
    known = ((known_propositions(example), example) for _, example in predictions)
    yield from predicted_props(known)


def _block(sentence: SrlExample, propositions: Sequence[Proposition]) -> Iterator[str]:
    """Yield a line a word: how a predicate is written, and its cell in each column."""
    words, targets = sentence.words, sentence.targets or sentence.words
    tags: dict[int, tuple[str, ...]] = {}
    for place, held in propositions:
        if place is not None and tags.setdefault(place, held) != held:
            found = f"the word {words[place]!r} has two predicates in {excerpt(words)}"
            raise DataError(f"{found}; these columns hold one")
    names = [
        _name(target, word) if place in tags else _NONE
        for place, (target, word) in enumerate(zip(targets, words, strict=True))
    ]
    columns = [names, *(cells_of(tags[place]) for place in sorted(tags))]
    rows = ["\t".join(map(one_cell, row)) for row in zip(*columns, strict=True)]
    if words:
        yield "\n".join([*rows, "", ""])


def _name(target: str, word: str) -> str:
    """Return how a predicate is written: never as what stands for none."""
    return next((name for name in (target, word) if name != _NONE), "_")
