"""Columns of arguments, one for each predicate of a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from elmo_framework.console import plural
from elmo_framework.data.formats.columns import placed_cells
from elmo_framework.errors import DataError
from elmo_framework.tasks.srl.brackets import tags_of
from elmo_framework.tasks.srl.example import Proposition


def propositions_of(
    columns: Sequence[Sequence[str]], stated: Sequence[int], *, path: Path, first_line: int
) -> list[Proposition]:
    """Return the propositions of a sentence from its columns of arguments.

    A predicate is the word that another column states. Its column need not have `V` there: of
    "flip flopped" the second word may be stated, and be the `C-V` of a `V` before it.

    Args:
        columns: one a predicate, a cell a word.
        stated: the words that another column calls predicates, in order.
        path: for messages.
        first_line: of the sentence.

    Raises:
        DataError: there are more columns than predicates, or fewer, or a cell is malformed.
    """
    if len(columns) != len(stated):
        found = (
            f"found {plural(len(stated), 'predicate')} and "
            f"{plural(len(columns), 'column')} of arguments"
        )
        raise DataError(f"{found}; expected one for each", path=path, line=first_line)
    propositions = []
    for column, word in zip(columns, stated, strict=True):
        with placed_cells(path, first_line):
            tags = tags_of(column)
        propositions.append(Proposition(word, tuple(tags)))
    return propositions
