"""Recognize data files by their suffix and their first lines."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from elmo_framework.data.formats.columns import split_cells
from elmo_framework.data.formats.compressed import data_suffix
from elmo_framework.data.formats.records import cells_of, separator_of
from elmo_framework.data.formats.text_files import read_lines

NUM_SAMPLED_LINES = 64


class FileFormat(Enum):
    """Formats of data files; the values are used in messages."""

    TABLE = "a table"
    JSON_LINES = "JSON objects, one per line"
    JSON = "a JSON document"
    COLUMNS = "columns with one word per line"
    CONLLU = "CoNLL-U"
    CONLL2012 = "the columns of CoNLL-2012"
    TREES = "bracketed trees"
    PROPOSITIONS = "predicates with their tags"
    TAGGED_WORDS = "words joined to their tags"
    XML = "XML"


_SUFFIXES: dict[str, frozenset[FileFormat]] = {
    ".csv": frozenset({FileFormat.TABLE}),
    ".tsv": frozenset({FileFormat.TABLE}),
    ".jsonl": frozenset({FileFormat.JSON_LINES}),
    ".jsonlines": frozenset({FileFormat.JSON_LINES}),
    ".ndjson": frozenset({FileFormat.JSON_LINES}),
    ".json": frozenset({FileFormat.JSON}),
    ".conllu": frozenset({FileFormat.CONLLU}),
    ".conllup": frozenset({FileFormat.CONLLU}),
    ".conll": frozenset({FileFormat.COLUMNS, FileFormat.CONLL2012}),
    ".iob": frozenset({FileFormat.COLUMNS}),
    ".iob2": frozenset({FileFormat.COLUMNS}),
    ".bio": frozenset({FileFormat.COLUMNS}),
    ".xml": frozenset({FileFormat.XML}),
}
_JSON = frozenset({FileFormat.JSON_LINES, FileFormat.JSON})
_COLUMNS_SUFFIX = re.compile(r"\.\w*_conll")  # `.gold_conll` of OntoNotes

_XML = re.compile(r"\s*<(\?xml\b|!--|!DOCTYPE\b|[A-Za-z_][^<>]*>(<|\s*$))")
_TREE = re.compile(r"\([0-4] .*\)\s*")
_PROPOSITION = re.compile(r"\s*-?\d+ .* \|\|\| .*")
_WORD_NUMBER = re.compile(r"\d+([-.]\d+)?")
_BEGIN_DOCUMENT = re.compile(r"#\s?begin document")
_DOCUMENT_START = "-DOCSTART-"
_TAG = re.compile(r"O|[BIESLUM]-\S+|[A-Z]+[$A-Z]*|[^\w\s]+|\S*\*\S*")
_SPAN_TAG = re.compile(r"O|[BIESLUM]-\S+|\S*\*\S*")
_PART_OF_SPEECH = re.compile(r"[A-Z]{2,}\$?")
_MAX_TAGGED = 4
"""Columns of a word and its labels in most files; a longer line may be a sentence."""
_UNFINISHED = re.compile(r".*[{\[,:]\s*")


@dataclass(frozen=True)
class FileSample:
    """The first lines of a file, blank ones included."""

    path: Path
    lines: Sequence[str]

    @classmethod
    def of(cls, path: Path) -> FileSample:
        """Read the beginning of a file.

        Raises:
            DataError: it cannot be read, or is not UTF-8.
        """
        return cls(path, tuple(line for _, line in islice(read_lines(path), NUM_SAMPLED_LINES)))

    @property
    def filled_lines(self) -> list[str]:
        return [line for line in self.lines if line.strip()]

    def object(self) -> Mapping[str, Any] | None:
        """Return the JSON object on the first line that is not blank, if any."""
        return _object(next(iter(self.filled_lines), ""))

    def column_names(self) -> list[str]:
        """Return the cells of the first line that is not blank, read as a table."""
        first = next(iter(self.filled_lines), "")
        return [cell.strip() for cell in cells_of(first, separator_of(self.path, first))]

    def is_json_by_name(self) -> bool:
        """Return whether the suffix is that of JSON, so that no line can be a plain sentence."""
        return not _JSON.isdisjoint(_SUFFIXES.get(data_suffix(self.path), ()))

    def formats(self) -> frozenset[FileFormat]:
        """Return the formats that the file may have; none for plain text."""
        suffix = data_suffix(self.path)
        content = formats_of_lines(self.lines)
        if suffix in (".json", ".tsv"):
            return content or _SUFFIXES[suffix]
        if suffix == ".conll" or _COLUMNS_SUFFIX.fullmatch(suffix):
            return content or _SUFFIXES[".conll"]
        return _SUFFIXES.get(suffix, content)


def formats_of_lines(lines: Sequence[str]) -> frozenset[FileFormat]:
    """Return the formats that a text with these first lines may have; none for plain text."""
    filled = [line for line in lines if line.strip()]
    if not filled:
        return frozenset()
    if filled[0].lstrip().startswith("{"):
        return _formats_of_json(filled)
    if _XML.match(filled[0]):
        return frozenset({FileFormat.XML})
    recognizers: dict[FileFormat, Callable[[Sequence[str]], bool]] = {
        FileFormat.CONLLU: _is_conllu,
        FileFormat.CONLL2012: _is_conll2012,
        FileFormat.TREES: _all(_TREE),
        FileFormat.PROPOSITIONS: _all(_PROPOSITION),
    }
    for name, recognizes in recognizers.items():
        if recognizes(filled):
            return frozenset({name})
    formats: set[FileFormat] = set()
    if _is_columns(lines):
        formats.add(FileFormat.COLUMNS)
    if _is_table(filled):
        formats.add(FileFormat.TABLE)
    return frozenset(formats)


def described(formats: Collection[FileFormat]) -> str:
    """Name formats in a message, in the order of `FileFormat`."""
    return " or ".join(each.value for each in FileFormat if each in formats)


def look_like_sentences(lines: Sequence[str]) -> bool:
    """Return whether most lines are plain text: long, and without the tag of a span at the end."""
    rows = [line.split() for line in lines if line.strip() and "\t" not in line]
    texts = [row for row in rows if len(row) > _MAX_TAGGED and not _SPAN_TAG.fullmatch(row[-1])]
    return 2 * len(texts) > len(rows)


def _all(pattern: re.Pattern[str]) -> Callable[[Sequence[str]], bool]:
    return lambda lines: all(map(pattern.fullmatch, lines))


def _formats_of_json(lines: Sequence[str]) -> frozenset[FileFormat]:
    """Distinguish JSON lines from one document, which may also be on one line."""
    if _object(lines[0]) is None and _UNFINISHED.fullmatch(lines[0]) and len(lines) > 1:
        return frozenset({FileFormat.JSON})
    many = {FileFormat.JSON_LINES}
    return frozenset(many if len(lines) > 1 else many | {FileFormat.JSON})


def _object(line: str) -> Mapping[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _is_conllu(lines: Sequence[str]) -> bool:
    if lines[0].startswith("# global.columns"):
        return True
    words = [line.split("\t") for line in lines if not line.startswith("#")]
    return bool(words) and all(
        len(cells) == 10 and _WORD_NUMBER.fullmatch(cells[0]) for cells in words
    )


def _is_conll2012(lines: Sequence[str]) -> bool:
    if _BEGIN_DOCUMENT.match(lines[0]):
        return True
    rows = [split_cells(line, "tabs or blanks") for line in lines if not line.startswith("#")]
    # Columns 1, 2 and 5: the part, the word number and the brackets of the parse.
    return bool(rows) and all(
        len(row) >= 12 and row[1].isdecimal() and row[2].isdecimal() and "*" in row[5]
        for row in rows
    )


def _is_columns(lines: Sequence[str]) -> bool:
    """Distinguish one word per line with labels from sentences, which do not end with labels."""
    if any(line.startswith(_DOCUMENT_START) for line in lines):
        return True
    blocks = [
        [split_cells(line) for line in block]
        for is_filled, block in groupby(lines, lambda line: bool(line.strip()))
        if is_filled
    ]
    rows = [row for block in blocks for row in block]
    last = [row[-1] for row in rows]
    return (
        len(rows) > 1
        and all(len(row) > 1 for row in rows)
        and all(_is_even(block) for block in blocks)
        and all(map(_TAG.fullmatch, last))
        and (any(map(_SPAN_TAG.fullmatch, last)) or _are_parts_of_speech(last))
    )


def _are_parts_of_speech(cells: Sequence[str]) -> bool:
    """Return whether most cells are capitals, which the last words of sentences seldom are."""
    return len(cells) > 2 and 2 * sum(map(bool, map(_PART_OF_SPEECH.fullmatch, cells))) > len(cells)


def _is_table(lines: Sequence[str]) -> bool:
    return len(lines) > 1 and "\t" in lines[0] and _is_even(line.split("\t") for line in lines)


def _is_even(rows: Iterable[Sequence[str]]) -> bool:
    return len(set(map(len, rows))) == 1
