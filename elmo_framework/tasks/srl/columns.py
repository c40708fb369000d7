"""Parse columns of arguments, one for each predicate of a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from elmo_framework.console import plural
from elmo_framework.data.formats.columns import placed_cells
from elmo_framework.errors import DataError
from elmo_framework.metrics.srl import Proposition
from elmo_framework.tasks.srl.brackets import tags_of


def propositions_of(
    columns: Sequence[Sequence[str]], predicates: Sequence[int], *, path: Path, first_line: int
) -> list[Proposition]:
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
        with placed_cells(path, first_line):
            tags = tags_of(column)
        propositions.append(Proposition(word, tuple(tags)))
    return propositions
