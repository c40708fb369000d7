"""Read the columns of the CoNLL-2012 shared task, the format of OntoNotes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from elmo_framework.data.formats.columns import CellError, Row, read_blocks
from elmo_framework.errors import DataError

_ID, _PART, _WORD, _LEMMA, _FRAMESET, _SPEAKER, _ENTITY, _FIRST_PREDICATE = 0, 1, 3, 6, 7, 9, 10, 11
_MIN_COLUMNS = _FIRST_PREDICATE + 1
_BEGINS, _ENDS = re.compile(r"#begin|#\s*begin document"), re.compile(r"#\s*end document")
_CELL = re.compile(r"(?:\(([^()*]+))?\*(\)?)|\(([^()*]+)\)")
_ALLOWED = "'(LABEL*', '*)', '(LABEL*)' and '*'"
_BEGIN = re.compile(r"#\s*begin document \((.*)\)(?:; part (\d+))?")
_ESCAPED = {"/.": ".", "/?": "?"}


@dataclass(frozen=True, slots=True)
class Conll2012Sentence:
    """One sentence; each column has one cell per word.

    Attributes:
        document: the number of its document in the file, from 0; several may have one name.
        document_id: from the line that begins the document, or from the first column.
        part: of the document, as in the line that begins it, `000`; None if that line has none.
        first_line: the line of its first word, from 1; each word has one line.
        words: the words.
        lemmas: of predicates; `-` for others, but some corpora have the lemmas of more words.
        framesets: the PropBank frame sets of predicates, such as `01`; `-` for others.
        speakers: the speaker or writer of each word; `-` if unknown.
        entities: brackets with the types of named entities, such as `(ORG*`; `*` outside.
        predicates: for each predicate the brackets of its arguments, such as `(ARG0*`.
        coreference: brackets with entity numbers, such as `(12|(7)`; `-` for none.
    """

    document: int
    document_id: str
    part: str | None
    first_line: int
    words: tuple[str, ...]
    lemmas: tuple[str, ...]
    framesets: tuple[str, ...]
    speakers: tuple[str, ...]
    entities: tuple[str, ...]
    predicates: tuple[tuple[str, ...], ...]
    coreference: tuple[str, ...]


def read_conll2012(path: Path) -> Iterator[Conll2012Sentence]:
    """Yield the sentences of a file, in order; lines that begin and end documents may be missing.

    Without them a document continues while the first two columns stay the same. If a line begins
    a document without a part, a new part begins where the second column changes.

    A line with a tab has tabs between all columns, so that cells may be empty, as in LitBank.

    Raises:
        DataError: the file cannot be read, a line has too few columns or not as many as others of
            its sentence, or the file has no sentences.
    """
    number, document_id, part = -1, "", None
    begun: tuple[str, str | None] | None = None
    previous: tuple[str, str] | None = None
    blocks = read_blocks(path, between="tabs or blanks", comment="#", min_width=_MIN_COLUMNS)
    for rows, comments in blocks:
        for line, text in comments:
            if _BEGINS.match(text):
                begun, previous = _name(text, path, line), None
            elif _ENDS.match(text):
                begun, previous = None, None
        name, part_of_name = begun or (rows[0].columns[_ID], None)
        document = (name, part_of_name or rows[0].columns[_PART])
        if document != previous:
            has_no_part = part_of_name is None and (begun is None or previous is not None)
            number, document_id = number + 1, name
            part = _part(rows[0], path) if has_no_part else part_of_name
            previous = document
        yield _sentence(rows, number, document_id, part)


def _name(comment: str, path: Path, line: int) -> tuple[str, str | None]:
    """Return the name and the part of the document that a comment line begins."""
    match = _BEGIN.fullmatch(comment)
    if match is None:
        expected = "expected '#begin document (NAME); part NNN'"
        raise DataError(f"found {comment!r}, {expected}", path=path, line=line)
    return match[1], match[2]


def _sentence(
    rows: Sequence[Row], document: int, document_id: str, part: str | None
) -> Conll2012Sentence:
    columns = list(zip(*(row.columns for row in rows), strict=True))
    return Conll2012Sentence(
        document=document,
        document_id=document_id,
        part=part,
        first_line=rows[0].line,
        words=columns[_WORD],
        lemmas=columns[_LEMMA],
        framesets=columns[_FRAMESET],
        speakers=columns[_SPEAKER],
        entities=columns[_ENTITY],
        predicates=tuple(columns[_FIRST_PREDICATE:-1]),
        coreference=columns[-1],
    )


def _part(row: Row, path: Path) -> str:
    """Return the part in the second column with three digits, as in comment lines."""
    if not row.columns[_PART].isdecimal():
        expected = "expected the number of a part of the document"
        raise DataError(
            f"the second column is {row.columns[_PART]!r}, {expected}", path=path, line=row.line
        )
    return f"{int(row.columns[_PART]):03}"


def unescaped(words: Iterable[str]) -> tuple[str, ...]:
    """Return words with `.` for OntoNotes's `/.` and `?` for `/?`, as e2e-coref and AllenNLP do."""
    return tuple(_ESCAPED.get(word, word) for word in words)


def tags_of_brackets(cells: Sequence[str], what: str) -> list[str]:
    """Return the BIO tags of a column of brackets: `(LABEL*`, `*)`, `(LABEL*)` or `(LABEL)`, `*`.

    Args:
        cells: of the words.
        what: a bracket marks, for messages.

    Raises:
        CellError: a bracket is not closed, not open, or inside another.
    """
    tags: list[str] = []
    open_label: str | None = None
    for position, cell in enumerate(cells):
        match = _CELL.fullmatch(cell)
        if match is None:
            raise CellError(
                position, f"{cell!r} is not a valid cell for an {what}; allowed: {_ALLOWED}"
            )
        begun = match[1] or match[3]
        if begun is not None and open_label is not None:
            raise CellError(position, f"{cell!r} begins inside the {what} {open_label!r}")
        label = begun or open_label
        if match[2] and label is None:
            raise CellError(position, f"{cell!r} ends an {what} that has not begun")
        tags.append("O" if label is None else f"{'I' if begun is None else 'B'}-{label}")
        open_label = None if cell.endswith(")") else label
    if open_label is not None:
        begin = max(position for position, tag in enumerate(tags) if tag.startswith("B-"))
        raise CellError(begin, f"the {what} {open_label!r} does not end")
    return tags
