"""Files with a word a line: their sentences, and their columns of arguments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from elmo_framework.common.errors import DataError
from elmo_framework.data.columns import Row
from elmo_framework.data.paths import read_lines
from elmo_framework.tasks.srl.brackets import CellError, tags_of
from elmo_framework.tasks.srl.example import Proposition

_PREDICATES = ("B-V", "I-V")


def read_blocks(
    path: Path, *, separator: str | None = None, has_comments: bool = False
) -> Iterator[list[Row]]:
    """Yield what stands between blank lines.

    Args:
        path: of the file.
        separator: what stands between columns; None for any blanks.
        has_comments: whether lines that begin with `#` are left out.

    Raises:
        DataError: the file cannot be read, a line has not as many columns as those before it in
            its block, or there is no block at all.
    """
    is_empty = True
    block: list[Row] = []
    for number, line in chain(read_lines(path), [(0, "")]):
        if has_comments and line.startswith("#"):
            continue
        if line.strip():
            block.append(_row(number, line, separator, block, path))
        elif block:
            yield block
            is_empty, block = False, []
    if is_empty:
        raise DataError("there is no sentence in this file", path=path)


def _row(number: int, line: str, separator: str | None, before: list[Row], path: Path) -> Row:
    row = Row(number, tuple(line.split(separator)))
    if before and len(row.columns) != len(before[0].columns):
        expected = f"expected {len(before[0].columns)} as on line {before[0].line}"
        found = f"found {len(row.columns)} columns, {expected}: {line!r}"
        raise DataError(found, path=path, line=number)
    return row


def propositions_of(
    columns: Sequence[Sequence[str]], stated: Sequence[int], *, path: Path, first_line: int
) -> list[Proposition]:
    """Return the propositions of a sentence from its columns of arguments.

    A predicate stands where its arguments have `V`. Without one it is the word that another
    column states.

    Args:
        columns: one a predicate, a cell a word.
        stated: the words that another column calls predicates, in order.
        path: for messages.
        first_line: of the sentence.

    Raises:
        DataError: there are more columns than predicates, or fewer, or a cell is malformed.
    """
    if len(columns) != len(stated):
        found = f"found {len(stated)} predicates and {len(columns)} columns of arguments"
        raise DataError(f"{found}; expected one for each", path=path, line=first_line)
    propositions = []
    for column, word in zip(columns, stated, strict=True):
        try:
            tags = tags_of(column)
        except CellError as error:
            line = first_line + error.position
            raise DataError(str(error), path=path, line=line) from error
        places = [place for place, tag in enumerate(tags) if tag in _PREDICATES]
        propositions.append(Proposition(places[0] if places else word, tuple(tags)))
    return propositions
