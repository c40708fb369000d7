"""Formats of predictions: JSON lines, tables, brat, and those of a task."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import Any

from elmo_framework.data.annotation import Annotation, PredictionRecord
from elmo_framework.data.formats.columns import one_line
from elmo_framework.data.inputs import Predicted
from elmo_framework.errors import DataError, RunError, allowed
from elmo_framework.experiment.assembly import Assembly
from elmo_framework.experiment.prediction_record import (
    BASE_COLUMNS,
    cell,
    has_annotations,
    json_of,
    record_of,
    rows_of,
)
from elmo_framework.io.outputs import BRAT
from elmo_framework.model.task import HeadTask

_IDS = ("id", "doc_id", "doc_key", "document_id")
_SPECIAL = re.compile(r"[^\w.-]+")
_MAX_NAME = 200
"""Bytes of the name of a document of brat; file systems allow 255, with suffixes."""


@dataclass(frozen=True)
class PredictionWriter:
    """Writes predictions in one format.

    Attributes:
        task: of the predictions.
        name: of the format.
        labels: those that the model can predict.
        top_k: number of labels that are written with their probabilities.
        document: the name of documents of brat whose inputs have no `id`.
    """

    task: HeadTask[Any, Any]
    name: str
    labels: Sequence[str] = ()
    top_k: int = 1
    document: str = "predictions"

    def __post_init__(self) -> None:
        names = formats_of(self.task)
        if self.name not in names:
            raise RunError(
                f"unknown format {self.name!r} for predictions of this run; "
                f"{allowed(self.name, names)}"
            )

    @classmethod
    def of(cls, run: Assembly, name: str, **options: Any) -> PredictionWriter:
        """Return what writes the predictions of a run; options are those above.

        Raises:
            RunError: the task has no such format, with those that it has.
        """
        head = run.head()
        labels = () if head.labels is None else head.labels.items
        return cls(head.task, name, labels, **options)

    @property
    def is_folder(self) -> bool:
        """Whether predictions are several files."""
        return self.name == BRAT

    def pieces(self, predictions: Iterable[Predicted]) -> Iterator[str]:
        """Yield the text of a file.

        Raises:
            RunError: the format has several files.
            DataError: the format cannot hold the predictions.
        """
        if self.is_folder:
            raise RunError(f"{BRAT} writes a folder of files; name it with --output-file")
        task = self.task
        if self.name in task.formats:
            pairs = ((each.prediction, each.input.example) for each in predictions)
            return task.formats[self.name](pairs)
        if self.name in task.record_formats:
            records = (record_of(task, each) for each in predictions)
            return task.record_formats[self.name](records, self.labels)
        return self._lines(predictions) if self.name == "jsonl" else self._table(predictions)

    def files(self, predictions: Iterable[Predicted]) -> Iterator[tuple[str, str]]:
        """Yield the name and the text of each file of brat.

        Inputs with the same `id` (or `doc_id`, `doc_key`, `document_id`), one after the other, are
        one document with that name; so are all inputs without. A long name ends with its digest.

        Raises:
            DataError: two documents have the same name.
        """
        seen = set[str]()
        records = (record_of(self.task, each) for each in predictions)
        for key, group in groupby(records, key=self._document_of):
            name = _document_name(key)
            if name in seen:
                raise DataError(f"two documents have the name {name!r}; ids must be unique")
            seen.add(name)
            text, annotations = _standoff(group)
            yield f"{name}.txt", text
            yield f"{name}.ann", annotations

    def _lines(self, predictions: Iterable[Predicted]) -> Iterator[str]:
        for each in predictions:
            output = json_of(self.task, each, top_k=self.top_k)
            yield json.dumps(output, ensure_ascii=False) + "\n"

    def _table(self, predictions: Iterable[Predicted]) -> Iterator[str]:
        """Yield the lines of a table whose columns are those of the first row."""
        line = _csv_line if self.name == "csv" else _tsv_line
        columns: Sequence[str] = ()
        for number, each in enumerate(predictions, start=1):
            for row in rows_of(self.task, each, number, top_k=self.top_k):
                if not columns:
                    columns = [*row]
                    yield line(columns)
                if unknown := [name for name in row if name not in columns]:
                    raise DataError(
                        f"input {number} has the field {unknown[0]!r}, which inputs before it do "
                        f"not have; the columns of {self.name} must be the same: use jsonl"
                    )
                yield line([cell(row.get(name)) for name in columns])
        if not columns and has_annotations(self.task):
            yield line(BASE_COLUMNS)

    def _document_of(self, record: PredictionRecord) -> str:
        fields = record.input.fields
        names = (fields[key] for key in _IDS if fields.get(key) not in (None, ""))
        return str(next(names, self.document))


def formats_of(task: HeadTask[Any, Any]) -> list[str]:
    """Return the names of the formats that predictions of a task can have."""
    tables = ["jsonl", "csv", "tsv", *([BRAT] if has_annotations(task) else [])]
    return [*tables, *task.formats, *task.record_formats]


def check_brat_folder(path: Path) -> None:
    """Refuse to replace what is not a folder with files of brat only.

    Raises:
        RunError: it is a file, or has other files.
    """
    if not path.is_dir():
        raise RunError(f"{path} is a file, and {BRAT} writes a folder; choose another path")
    others = [each for each in path.iterdir() if each.suffix not in (".txt", ".ann", ".conf")]
    if others:
        raise RunError(f"{path} has other files than those of {BRAT}: {min(others).name}")


def _csv_line(cells: Iterable[str]) -> str:
    line = io.StringIO()
    # With "\n" alone, Python before 3.13 does not quote a cell with a carriage return.
    csv.writer(line, lineterminator="\r\n").writerow(cells)
    return line.getvalue().removesuffix("\r\n") + "\n"


def _tsv_line(cells: Iterable[str]) -> str:
    """Return a line without quotation marks, which our readers and others take literally."""
    return "\t".join(one_line(each) for each in cells) + "\n"


def _document_name(key: str) -> str:
    """Return the name of the files of a document, without special characters, short enough."""
    name = _SPECIAL.sub("_", key).lstrip(".") or "_"
    encoded = name.encode()
    if len(encoded) <= _MAX_NAME:
        return name
    digest = sha256(encoded).hexdigest()[:16]
    return f"{encoded[: _MAX_NAME - 17].decode(errors='ignore')}-{digest}"


def _standoff(records: Iterable[PredictionRecord]) -> tuple[str, str]:
    """Return the text of a document, an input after the other, and its annotations."""
    texts, lines = list[str](), list[str]()
    length, first = 0, 1
    for record in map(_with_characters, records):
        for index in range(len(record.annotations)):
            lines += _span_lines(record, index, first + index, length)
        lines += _group_lines(record.annotations, first)
        texts.append(f"{record.source.text}\n")
        length, first = length + len(texts[-1]), first + len(record.annotations)
    return "".join(texts), "".join(f"{line}\n" for line in lines)


def _with_characters(record: PredictionRecord) -> PredictionRecord:
    """Leave out spans without characters, as of an empty word, which brat does not have."""
    places = [
        index
        for index, span in enumerate(record.annotations)
        if record.source.text[slice(*record.source.characters(span))].strip("\r\n")
    ]
    annotations = [record.annotations[index] for index in places]
    probabilities = [record.probabilities[index] for index in places if record.probabilities]
    return replace(record, annotations=annotations, probabilities=probabilities)


def _span_lines(record: PredictionRecord, index: int, number: int, before: int) -> Iterator[str]:
    span = record.annotations[index]
    start, end = record.source.characters(span)
    words = record.source.text[start:end]
    # A span over several lines is written as a piece for each.
    pieces = [(start + each.start(), start + each.end()) for each in re.finditer("[^\r\n]+", words)]
    places = ";".join(f"{before + first} {before + last}" for first, last in pieces)
    shown = " ".join(re.findall("[^\r\n]+", words))
    yield f"T{number}\t{_type(span.label)} {places}\t{shown}"
    if record.probabilities:
        ranked = [f"{label} {p:.4f}" for label, p in record.probabilities[index].items()]
        yield f"#{number}\tAnnotatorNotes T{number}\t{', '.join(ranked)}"


def _group_lines(annotations: Sequence[Annotation], first: int) -> Iterator[str]:
    """Yield a relation from each head to its arguments, or an equivalence of a group of equals."""
    groups: dict[int, list[int]] = {}
    for number, span in enumerate(annotations, start=first):
        if span.group is not None:
            groups.setdefault(span.group, []).append(number)
    for numbers in groups.values():
        if all(annotations[number - first].is_head is None for number in numbers):
            yield "*\tCoreference " + " ".join(f"T{number}" for number in numbers)
            continue
        head = next((number for number in numbers if annotations[number - first].is_head), None)
        for number in numbers:
            if head not in (None, number):
                label = _type(annotations[number - first].label)
                yield f"R{number}\t{label} Arg1:T{head} Arg2:T{number}"


def _type(label: str) -> str:
    """Return a label as the name of a type of brat: letters, digits, `_` and `-`."""
    return re.sub(r"[^\w-]+", "_", label) or "_"
