"""Read and write columns of arguments, one for each predicate; `srl-eval.pl` compares them.

A column has a cell for each word: `(ARG0*` where an argument begins, `*)` where it ends, `(ARG0*)`
where it is one word, and `*` elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from elmo_framework.console import plural
from elmo_framework.data.formats.columns import one_cell, placed_cells
from elmo_framework.data.formats.conll2012 import tags_of_brackets
from elmo_framework.data.labels import excerpt
from elmo_framework.data.tagging import spans
from elmo_framework.errors import DataError
from elmo_framework.metrics.srl import Proposition
from elmo_framework.tasks.srl.example import SrlExample


def cells_of(tags: Sequence[str]) -> list[str]:
    """Return the column of brackets for BIO tags."""
    cells = ["*"] * len(tags)
    for start, end, label in spans(tags):
        cells[start] = f"({label}*"
        cells[end - 1] += ")"
    return cells


def propositions_of(
    columns: Sequence[Sequence[str]], predicates: Sequence[int], *, path: Path, first_line: int
) -> tuple[Proposition, ...]:
    """Return the propositions of a sentence from its columns of arguments.

    The predicates come from another column. The column of arguments need not have `V` there: of
    "flip flopped" the second word may be the predicate, and be the `C-V` of a `V` before it.

    Args:
        columns: one per predicate, with one cell per word.
        predicates: the positions of the predicates, in order.
        path: the file, for messages.
        first_line: the first line of the sentence.

    Raises:
        DataError: there are more columns than predicates, or fewer, or a cell is malformed.
    """
    if len(columns) != len(predicates):
        problem = (
            f"found {plural(len(predicates), 'predicate')} and "
            f"{plural(len(columns), 'column')} of arguments"
        )
        raise DataError(f"{problem}; expected one for each", path=path, line=first_line)
    propositions = []
    for column, word in zip(columns, predicates, strict=True):
        with placed_cells(path, range(first_line, first_line + len(column))):
            tags = tags_of_brackets(column, "argument")
        propositions.append(Proposition(word, tuple(tags)))
    return tuple(propositions)


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


def words_and_props(
    predictions: Iterable[tuple[Sequence[Proposition], SrlExample]],
) -> Iterator[str]:
    """Write the columns of `predicted_props` after one with the words.

    The reader `conll2005` with `target_column: 1` reads them.

    Raises:
        DataError: as of `predicted_props`.
    """
    return predicted_props(predictions, has_words=True)


def predicted_props(
    predictions: Iterable[tuple[Sequence[Proposition], SrlExample]], *, has_words: bool = False
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
            yield from _block(sentence, propositions, has_words)
            propositions = []
        sentence = example
        propositions += predicted
    if sentence is not None:
        yield from _block(sentence, propositions, has_words)


def gold_props(predictions: Iterable[tuple[object, SrlExample]]) -> Iterator[str]:
    """Write the gold arguments of the same examples, the scorer's other input.

    Raises:
        DataError: an example has none, or it cannot be written.
    """
    gold = ((known_propositions(example), example) for _, example in predictions)
    yield from predicted_props(gold)


def _block(
    sentence: SrlExample, propositions: Sequence[Proposition], has_words: bool
) -> Iterator[str]:
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
    columns = [
        *([words] if has_words else []),
        names,
        *(cells_of(tags[place]) for place in sorted(tags)),
    ]
    rows = ["\t".join(map(one_cell, row)) for row in zip(*columns, strict=True)]
    if words:
        yield "\n".join([*rows, "", ""])


def _name(target: str, word: str) -> str:
    """Return the name of a predicate, which must differ from the mark of other words."""
    return next((name for name in (target, word) if name != _NONE), "_")
