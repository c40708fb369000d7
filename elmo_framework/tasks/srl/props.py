"""Write predicted and gold arguments in the columns of `srl-eval.pl`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from elmo_framework.data.formats.columns import one_cell
from elmo_framework.data.labels import excerpt
from elmo_framework.errors import DataError
from elmo_framework.metrics.srl import Proposition
from elmo_framework.tasks.srl.brackets import cells_of
from elmo_framework.tasks.srl.example import SrlExample

_NONE = "-"


def known_propositions(example: SrlExample) -> tuple[Proposition, ...]:
    """Return the propositions of an example.

    Raises:
        DataError: it has none.
    """
    if example.propositions is None:
        sentence = excerpt(example.words)
        raise DataError(f"a sentence without arguments cannot be scored: {sentence}")
    return example.propositions


def predicted_props(
    predictions: Iterable[tuple[Sequence[Proposition], SrlExample]],
) -> Iterator[str]:
    """Write the predicates of each sentence and their predicted arguments.

    The first column names each predicate as the corpus does, by its lemma or its sense, or by its
    word if the corpus has no such column. If the name differs, the scorer counts all arguments of
    the predicate as missed.

    Consecutive examples of one sentence are one block, as in the columns of a corpus, so that the
    scorer can compare them. Sentences without words, at which it would stop, are not written.

    Raises:
        DataError: a word of a sentence has two predicates whose arguments differ.
    """
    sentence: SrlExample | None = None
    propositions: list[Proposition] = []
    for predicted, example in predictions:
        # By identity: a text may contain the same sentence twice in a row.
        if sentence is not None and example.words is not sentence.words:
            yield from _block(sentence, propositions)
            propositions = []
        sentence = example
        propositions += predicted
    if sentence is not None:
        yield from _block(sentence, propositions)


def gold_props(predictions: Iterable[tuple[object, SrlExample]]) -> Iterator[str]:
    """Write the gold arguments of the same examples, the scorer's other input.

    Raises:
        DataError: an example has none, or it cannot be written.
    """
    gold = ((known_propositions(example), example) for _, example in predictions)
    yield from predicted_props(gold)


def _block(sentence: SrlExample, propositions: Sequence[Proposition]) -> Iterator[str]:
    """Yield one line per word: the name of a predicate, and the cells of the arguments."""
    words, targets = sentence.words, sentence.targets or sentence.words
    tags: dict[int, tuple[str, ...]] = {}
    for place, labels in propositions:
        if place is not None and tags.setdefault(place, labels) != labels:
            problem = f"the word {words[place]!r} has two predicates in {excerpt(words)}"
            raise DataError(f"{problem}; these columns allow only one")
    names = [
        _name(target, word) if place in tags else _NONE
        for place, (target, word) in enumerate(zip(targets, words, strict=True))
    ]
    columns = [names, *(cells_of(tags[place]) for place in sorted(tags))]
    rows = ["\t".join(map(one_cell, row)) for row in zip(*columns, strict=True)]
    if words:
        yield "\n".join([*rows, "", ""])


def _name(target: str, word: str) -> str:
    """Return the name of a predicate, which must differ from the mark of other words."""
    return next((name for name in (target, word) if name != _NONE), "_")
