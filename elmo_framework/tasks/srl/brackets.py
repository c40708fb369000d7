"""Convert arguments between columns of brackets, one for each predicate, and BIO tags.

A column has a cell for each word: `(ARG0*` where an argument begins, `*)` where it ends, `(ARG0*)`
where it is one word, and `*` elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from elmo_framework.console import plural
from elmo_framework.data.formats.columns import CellError, placed_cells
from elmo_framework.data.tagging import spans
from elmo_framework.errors import DataError
from elmo_framework.metrics.srl import Proposition

_CELL = re.compile(r"(?:\(([^()*]+))?\*(\)?)")
_ALLOWED = "'(LABEL*', '*)', '(LABEL*)' and '*'"


def tags_of(cells: Sequence[str]) -> list[str]:
    """Return the BIO tags of a column.

    Raises:
        CellError: a bracket is not closed, not open, or inside another.
    """
    tags: list[str] = []
    open_label: str | None = None
    for position, cell in enumerate(cells):
        match = _CELL.fullmatch(cell)
        if match is None:
            raise CellError(
                position, f"{cell!r} is not a valid cell of arguments; allowed: {_ALLOWED}"
            )
        begun = match[1]
        if begun is not None and open_label is not None:
            raise CellError(position, f"{cell!r} begins inside the argument {open_label!r}")
        label = begun or open_label
        if match[2] and label is None:
            raise CellError(position, f"{cell!r} ends an argument that has not begun")
        tags.append("O" if label is None else f"{'I' if begun is None else 'B'}-{label}")
        open_label = None if match[2] else label
    if open_label is not None:
        raise CellError(len(cells) - 1, f"the argument {open_label!r} does not end")
    return tags


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
            tags = tags_of(column)
        propositions.append(Proposition(word, tuple(tags)))
    return tuple(propositions)
