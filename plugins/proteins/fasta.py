"""Read protein sequences from FASTA files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from elmo_framework import DataError
from elmo_framework.data.formats import read_lines

_NO_RESIDUE = re.compile(r"[^A-Z*]")


@dataclass(frozen=True, slots=True)
class Protein:
    """A sequence of amino acids.

    Attributes:
        name: identifies it in a file of vectors.
        residues: one capital letter for each amino acid.
    """

    name: str
    residues: str


def read_fasta(path: Path, *, id_field: int | None = None) -> Iterator[Protein]:
    """Yield the sequences of a FASTA file, one at a time.

    A sequence may have several lines. Letters are converted to capitals, as in SeqVec, and `*` is
    a residue too. A file whose name ends with `.gz`, `.bz2`, `.xz` or `.zst` is decompressed.

    Args:
        path: of the file.
        id_field: the field of the header that is the name, from 0, with `|` between fields:
            SeqVec's default is 1, which is P12345 of `>sp|P12345|NAME_HUMAN ...`. By default the
            name is the first word of the header.

    Raises:
        DataError: with file and line: the file cannot be read, a sequence has no header, no
            residues or other characters, or two sequences have one name.
    """
    name, start = "", 0
    parts: list[str] = []
    lines_of_names: dict[str, int] = {}
    for number, line in _content(path):
        if not line.startswith(">"):
            parts.append(_residues(line, path, number, is_after_header=bool(start)))
            continue
        if start:
            yield _protein(name, parts, path, start)
        name, start, parts = _name(line, id_field, path, number), number, []
        if name in lines_of_names:
            message = f"the name {name!r} is that of line {lines_of_names[name]} too"
            raise DataError(message, path=path, line=number)
        lines_of_names[name] = number
    if not start:
        raise DataError("this file has no sequences", path=path)
    yield _protein(name, parts, path, start)


def _content(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines that are neither blank nor comments."""
    for number, line in read_lines(path):
        if line.strip() and not line.startswith(";"):
            yield number, line


def _residues(line: str, path: Path, number: int, *, is_after_header: bool) -> str:
    if not is_after_header:
        raise DataError("expected a header such as '>P12345'", path=path, line=number)
    residues = "".join(line.split()).upper()
    if match := _NO_RESIDUE.search(residues):
        message = f"{match[0]!r} is not an amino acid; remove gaps and numbers"
        raise DataError(message, path=path, line=number)
    return residues


def _name(line: str, id_field: int | None, path: Path, number: int) -> str:
    header = line[1:].strip()
    if id_field is None:
        name = header.split()[0] if header else ""
    else:
        fields = header.split("|")
        if not 0 <= id_field < len(fields):
            message = f"the header has no field {id_field}: {header!r}"
            raise DataError(message, path=path, line=number)
        name = fields[id_field].strip()
    if not name:
        raise DataError("the header has no name", path=path, line=number)
    return name


def _protein(name: str, parts: Iterable[str], path: Path, line: int) -> Protein:
    residues = "".join(parts)
    if not residues:
        raise DataError(f"the sequence {name!r} has no residues", path=path, line=line)
    return Protein(name, residues)
