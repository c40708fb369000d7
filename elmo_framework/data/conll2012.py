"""The columns of the CoNLL-2012 shared task, in which OntoNotes is passed on."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from elmo_framework.common.errors import DataError
from elmo_framework.data.columns import Row
from elmo_framework.data.paths import read_lines

_NUM_FIXED_BEFORE, _NUM_FIXED_AFTER = 11, 1
_MIN_COLUMNS = _NUM_FIXED_BEFORE + _NUM_FIXED_AFTER
_GAP = re.compile("[ \t]+")
_BEGIN = re.compile(r"#begin document \((.*)\)(?:; part (\d+))?\s*")


@dataclass(frozen=True, slots=True)
class Conll2012Sentence:
    """One sentence as it stands in the columns; each column holds a cell for each word.

    Attributes:
        document_id: from the line that begins the document, or from the first column.
        part: of the document, from 0.
        first_line: where the sentence begins in the file, from 1; a word stands on each line.
        words: the words.
        pos: their parts of speech.
        parse: their pieces of the constituency tree, as `(NP*`.
        predicate_lemmas: the lemmas of words that have a sense; `-` for the others.
        framesets: the PropBank frame sets of predicates, as `01`; `-` for the others.
        senses: the word senses; `-` where there is none.
        speakers: who says or writes each word; `-` where it is not known.
        named_entities: brackets, as `(GPE)`.
        predicates: for each predicate the brackets of its arguments, as `(ARG0*`.
        coreference: brackets with the numbers of entities, as `(12|(7)`; `-` for none.
    """

    document_id: str
    part: int
    first_line: int
    words: tuple[str, ...]
    pos: tuple[str, ...]
    parse: tuple[str, ...]
    predicate_lemmas: tuple[str, ...]
    framesets: tuple[str, ...]
    senses: tuple[str, ...]
    speakers: tuple[str, ...]
    named_entities: tuple[str, ...]
    predicates: tuple[tuple[str, ...], ...]
    coreference: tuple[str, ...]


def read_conll2012(path: Path) -> Iterator[Conll2012Sentence]:
    """Yield the sentences of a file, in order; lines that begin and end documents may be missing.

    Raises:
        DataError: the file cannot be read, a line has too few columns or not as many as those
            before it in its sentence, or there is no sentence at all.
    """
    is_empty, document = True, None
    rows: list[Row] = []
    for number, line in chain(read_lines(path), [(0, "")]):
        text = line.strip(" \t")
        if text and not text.startswith("#"):
            rows.append(_row(number, text, rows, path))
            continue
        if rows:
            yield _sentence(rows, document, path)
            is_empty, rows = False, []
        if text.startswith("#begin"):
            document = _document(text, number, path)
    if is_empty:
        raise DataError("there is no sentence in this file", path=path)


def _document(text: str, number: int, path: Path) -> tuple[str, int]:
    match = _BEGIN.fullmatch(text)
    if match is None:
        expected = "expected '#begin document (NAME); part NNN'"
        raise DataError(f"found {text!r}, {expected}", path=path, line=number)
    return match[1], int(match[2] or 0)


def _row(number: int, text: str, before: Sequence[Row], path: Path) -> Row:
    row = Row(number, tuple(_GAP.split(text)))
    found = f"found {len(row.columns)} columns"
    if len(row.columns) < _MIN_COLUMNS:
        expected = f"expected {_MIN_COLUMNS} and one for each predicate"
        raise DataError(f"{found}, {expected}: {text!r}", path=path, line=number)
    if before and len(row.columns) != len(before[0].columns):
        expected = f"expected {len(before[0].columns)} as on line {before[0].line}"
        raise DataError(f"{found}, {expected}: {text!r}", path=path, line=number)
    return row


def _sentence(
    rows: Sequence[Row], document: tuple[str, int] | None, path: Path
) -> Conll2012Sentence:
    columns = list(zip(*(row.columns for row in rows), strict=True))
    document_id, part = document or (columns[0][0], _part(rows[0], path))
    _, _, _, words, pos, parse, lemmas, framesets, senses, speakers, entities = columns[
        :_NUM_FIXED_BEFORE
    ]
    return Conll2012Sentence(
        document_id=document_id,
        part=part,
        first_line=rows[0].line,
        words=words,
        pos=pos,
        parse=parse,
        predicate_lemmas=lemmas,
        framesets=framesets,
        senses=senses,
        speakers=speakers,
        named_entities=entities,
        predicates=tuple(columns[_NUM_FIXED_BEFORE:-_NUM_FIXED_AFTER]),
        coreference=columns[-1],
    )


def _part(row: Row, path: Path) -> int:
    if not row.columns[1].isdecimal():
        expected = "expected the number of a part of the document"
        raise DataError(
            f"the second column is {row.columns[1]!r}, {expected}", path=path, line=row.line
        )
    return int(row.columns[1])
