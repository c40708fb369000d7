"""The columns of the CoNLL-2012 shared task, in which OntoNotes is passed on."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from elmo_framework.common.errors import DataError
from elmo_framework.data.columns import Comment, Row, read_blocks

_ID, _PART, _WORD, _FRAMESET, _SPEAKER, _FIRST_PREDICATE = 0, 1, 3, 7, 9, 11
_MIN_COLUMNS = _FIRST_PREDICATE + 1
_BEGIN = re.compile(r"#begin document \((.*)\)(?:; part (\d+))?")


@dataclass(frozen=True, slots=True)
class Conll2012Sentence:
    """One sentence as it stands in the columns; each column holds a cell for each word.

    Attributes:
        document_id: from the line that begins the document, or from the first column.
        part: of the document, as written in the line that begins it, `000`; None where that line
            names none.
        first_line: where the sentence begins in the file, from 1; a word stands on each line.
        words: the words.
        framesets: the PropBank frame sets of predicates, as `01`; `-` for the others.
        speakers: who says or writes each word; `-` where it is not known.
        predicates: for each predicate the brackets of its arguments, as `(ARG0*`.
        coreference: brackets with the numbers of entities, as `(12|(7)`; `-` for none.
    """

    document_id: str
    part: str | None
    first_line: int
    words: tuple[str, ...]
    framesets: tuple[str, ...]
    speakers: tuple[str, ...]
    predicates: tuple[tuple[str, ...], ...]
    coreference: tuple[str, ...]


def read_conll2012(path: Path) -> Iterator[Conll2012Sentence]:
    """Yield the sentences of a file, in order; lines that begin and end documents may be missing.

    A line that holds a tab has one between columns, so that cells may be empty, as in LitBank.

    Raises:
        DataError: the file cannot be read, a line has too few columns or not as many as those
            before it in its sentence, or there is no sentence at all.
    """
    document: tuple[str, str | None] | None = None
    blocks = read_blocks(path, between="tabs or blanks", comment="#", min_width=_MIN_COLUMNS)
    for rows, comments in blocks:
        for comment in comments:
            if comment.text.startswith("#begin"):
                document = _document(comment, path)
        yield _sentence(rows, document, path)


def _document(comment: Comment, path: Path) -> tuple[str, str | None]:
    match = _BEGIN.fullmatch(comment.text)
    if match is None:
        expected = "expected '#begin document (NAME); part NNN'"
        raise DataError(f"found {comment.text!r}, {expected}", path=path, line=comment.line)
    return match[1], match[2]


def _sentence(
    rows: Sequence[Row], document: tuple[str, str | None] | None, path: Path
) -> Conll2012Sentence:
    first = rows[0]
    columns = list(zip(*(row.columns for row in rows), strict=True))
    document_id, part = document or (first.columns[_ID], _part(first, path))
    return Conll2012Sentence(
        document_id=document_id,
        part=part,
        first_line=first.line,
        words=columns[_WORD],
        framesets=columns[_FRAMESET],
        speakers=columns[_SPEAKER],
        predicates=tuple(columns[_FIRST_PREDICATE:-1]),
        coreference=columns[-1],
    )


def _part(row: Row, path: Path) -> str:
    """Return the part that a column names, as lines that begin documents write it."""
    if not row.columns[_PART].isdecimal():
        expected = "expected the number of a part of the document"
        raise DataError(
            f"the second column is {row.columns[_PART]!r}, {expected}", path=path, line=row.line
        )
    return f"{int(row.columns[_PART]):03}"
