"""Write tagged sentences as CoNLL-U."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from elmo_framework.data.annotation import PredictionRecord
from elmo_framework.data.formats.columns import Row, one_line
from elmo_framework.data.tagging import conlleval_tags, label_of

COLUMNS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
_UNIVERSAL = frozenset(
    [
        "ADJ",
        "ADP",
        "ADV",
        "AUX",
        "CCONJ",
        "DET",
        "INTJ",
        "NOUN",
        "NUM",
        "PART",
        "PRON",
        "PROPN",
        "PUNCT",
        "SCONJ",
        "SYM",
        "VERB",
        "X",
        "_",
    ]
)


def divided_rows(rows: Iterable[Row]) -> tuple[list[Row], tuple[tuple[int, str], ...]]:
    """Return the rows of words, and the lines of others with the number of words before them."""
    words, skipped = list[Row](), list[tuple[int, str]]()
    for row in rows:
        if row.columns[0].isdecimal():
            words.append(row)
        else:
            skipped.append((len(words), "\t".join(row.columns)))
    return words, tuple(skipped)


def conllu_lines(records: Iterable[PredictionRecord], labels: Sequence[str]) -> Iterator[str]:
    """Write one word per line, with the comments, other rows and other columns of the input.

    Labels that are all universal parts of speech are in UPOS. Those of spans are in MISC, as
    `NER=B-PER`, and others are in XPOS. MISC has `SpaceAfter=No` where the text has no space.

    Args:
        records: of predictions.
        labels: all that the model can predict; they determine the column.
    """
    column = "misc" if any(map(label_of, labels)) else "xpos"
    column = "upos" if _UNIVERSAL.issuperset(labels) else column
    for number, record in enumerate(records, start=1):
        lines = [*map("\t".join, _rows(record, column))]
        for place, line in reversed(record.input.example.skipped):
            lines.insert(place, line)
        yield "".join(f"{line}\n" for line in [*_comments(record, number), *lines, ""])


def _comments(record: PredictionRecord, number: int) -> Iterator[str]:
    fields: Mapping[str, Any] = record.input.fields
    single = {name: value for name, value in fields.items() if isinstance(value, str | int | float)}
    required = {"sent_id": single.get("id", number), "text": record.source.text}
    missing = {key: value for key, value in required.items() if key not in single}
    comments = record.input.example.comments
    # The comments of the input, if it has any, have all of its single values.
    for key, value in (missing if comments else missing | single).items():
        yield f"# {one_line(key)} = {one_line(str(value))}"
    yield from comments


def _rows(record: PredictionRecord, column: str) -> Iterator[tuple[str, ...]]:
    """Yield the cells of each word; those that the input has and that are not predicted stay."""
    size = len(record.prediction)
    others = {
        name: cells
        for name in COLUMNS
        if isinstance(cells := record.input.fields.get(name), list) and len(cells) == size
    }
    offsets = record.source.offsets
    tags = conlleval_tags(record.prediction) if column == "misc" else record.prediction
    for index, (tag, (start, end)) in enumerate(zip(tags, offsets, strict=True)):
        cells = {name: str(values[index]) or "_" for name, values in others.items()}
        follows = offsets[index + 1][0] if index + 1 < size else None
        marks = [] if "misc" in others or follows != end else ["SpaceAfter=No"]
        if column != "misc":
            cells[column] = one_line(tag)
        elif tag != "O":
            marks.append(f"NER={one_line(tag)}")
        own = [] if cells.get("misc", "_") == "_" else [cells["misc"]]
        cells |= {"id": str(index + 1), "form": one_line(record.source.text[start:end])}
        cells["misc"] = "|".join([*own, *marks]) or "_"
        yield tuple(cells.get(name, "_") for name in COLUMNS)
