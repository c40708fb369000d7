"""Predictions with identifiers, character offsets and probabilities: JSON objects and rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice, zip_longest
from typing import Any, final

from elmo_framework.data.annotation import PredictionRecord, SourceText
from elmo_framework.data.inputs import Predicted
from elmo_framework.io.extras import import_extra
from elmo_framework.model.task import HeadTask

_Task = HeadTask[Any, Any]

BASE_COLUMNS = ("input", "text", "label", "start", "end")
"""The columns of a table of labeled spans that has no row."""


def has_annotations(task: _Task) -> bool:
    """Return whether a task predicts labeled spans."""
    return type(task).annotations is not HeadTask.annotations


def record_of(task: _Task, predicted: Predicted) -> PredictionRecord:
    """Find the characters and the labeled spans of a prediction."""
    prediction, source, probabilities, _ = predicted
    text = SourceText.of(source, [*task.sentences(source.example)])
    annotations = task.annotations(prediction, source.example)
    return PredictionRecord(prediction, source, text, annotations, probabilities)


def json_of(task: _Task, predicted: Predicted, *, top_k: int = 1) -> dict[str, Any]:
    """Return a prediction as one JSON object: the fields of its input, then what was predicted.

    Labeled spans have their characters and their probabilities, and `offsets` has the characters of
    each word. With `top_k` above 1, `top` has that many labels with their probabilities.
    """
    prediction, source = predicted.prediction, predicted.input
    output = task.to_json(prediction, source.example)
    probabilities = output.get("probabilities")
    if top_k > 1 and isinstance(probabilities, Mapping):
        output["top"] = _top(_descending(probabilities, top_k))
    if has_annotations(task):
        _annotate(task, output, record_of(task, predicted), top_k)
        output |= _mark(predicted)
    return source.output(output)


def rows_of(
    task: _Task, predicted: Predicted, number: int, *, top_k: int = 1
) -> Iterator[dict[str, Any]]:
    """Yield the rows of a prediction in a table: one for each labeled span, or just one.

    Rows begin with the fields of the input; those of a span only with single values.

    Args:
        task: of the prediction.
        predicted: the prediction.
        number: of the input, from 1.
        top_k: number of labels in a row.
    """
    source = predicted.input
    if not has_annotations(task):
        yield source.output(_cells(task, predicted, top_k))
        return
    record = record_of(task, predicted)
    fields = {name: value for name, value in source.fields.items() if _is_single(value)}
    for span, ranked in zip_longest(record.annotations, record.probabilities):
        start, end = record.source.characters(span)
        row = {"input": number} | ({} if span.group is None else {"group": span.group})
        row |= {"text": record.source.text[start:end], "label": span.label}
        row |= {"start": start, "end": end} | _columns(ranked, top_k) | _mark(predicted)
        yield replace(source, fields=fields).output(row)


@final
class Predictions(list[dict[str, Any]]):
    """A list with a JSON object for each input, as `elmo predict` writes them."""

    @classmethod
    def of(cls, task: _Task, predicted: Iterable[Predicted], *, top_k: int) -> Predictions:
        """Make a list of predictions."""
        items = [*predicted]
        predictions = cls(json_of(task, each, top_k=top_k) for each in items)
        predictions._task, predictions._top_k, predictions._predicted = task, top_k, items
        return predictions

    _task: _Task
    _top_k: int
    _predicted: Sequence[Predicted] = ()

    def to_pandas(self) -> Any:
        """Return a `pandas.DataFrame` with the rows and columns of `--format csv`.

        It is of all inputs that were predicted, also where the list was changed.

        Raises:
            RunError: pandas is not installed (extra `pandas`).
        """
        numbered = enumerate(self._predicted, start=1)
        rows = [rows_of(self._task, each, n, top_k=self._top_k) for n, each in numbered]
        table: Any = [*chain.from_iterable(rows)]
        if not table and has_annotations(self._task):
            table = {name: [] for name in BASE_COLUMNS}
        return import_extra("pandas", "pandas").DataFrame(table)


def _annotate(task: _Task, output: dict[str, Any], record: PredictionRecord, top_k: int) -> None:
    """Add characters and probabilities to the JSON of a prediction."""
    output["offsets"] = list(map(list, record.source.offsets))
    objects = [*task.annotated_objects(output)]
    for each, span in zip(objects, record.annotations, strict=False):
        start, end = record.source.characters(span)
        each |= {"start_char": start, "end_char": end}
    ranked = record.probabilities
    for each, probabilities in zip(objects, ranked, strict=False):
        each["probability"] = next(iter(probabilities.values()))
        if top_k > 1:
            each["top"] = _top(probabilities)
    if ranked and not objects:  # labels of words
        output["probabilities"] = [next(iter(each.values())) for each in ranked]
        if top_k > 1:
            output["top"] = [*map(_top, ranked)]


def _mark(predicted: Predicted) -> dict[str, bool]:
    return {"calibrated": True} if predicted.is_calibrated else {}


def _top(probabilities: Mapping[str, float]) -> list[dict[str, Any]]:
    return [{"label": label, "probability": value} for label, value in probabilities.items()]


def _descending(probabilities: Mapping[str, float], top_k: int) -> dict[str, float]:
    ranked = sorted(probabilities.items(), key=lambda item: -item[1])
    return dict(islice(ranked, top_k))


def _cells(task: _Task, predicted: Predicted, top_k: int) -> dict[str, Any]:
    """Return the JSON of a prediction as cells: texts, not words, and probabilities in columns."""
    prediction, source = predicted.prediction, predicted.input
    cells: dict[str, Any] = dict(source.texts)
    sentences = [*map(list, task.sentences(source.example))]
    output = task.to_json(prediction, source.example)
    for name, value in output.items():
        if name == "probabilities" and isinstance(value, Mapping):
            if "label" in output:
                cells |= _columns(_descending(value, top_k), top_k)
            else:
                cells |= {f"probability_{label}": each for label, each in value.items()}
        elif name not in task.sentence_keys or value not in sentences:
            cells[name] = value
        elif not source.texts:
            cells[name] = " ".join(value)
    return cells


def _columns(ranked: Mapping[str, float] | None, top_k: int) -> dict[str, Any]:
    """Return the probability of the first label, then the others with theirs, as columns."""
    if not ranked:
        return {}
    (_, first), *others = ranked.items()
    columns: dict[str, Any] = {"probability": first}
    for rank, (label, value) in enumerate(others[: top_k - 1], start=2):
        columns |= {f"label_{rank}": label, f"probability_{rank}": value}
    return columns


def _is_single(value: object) -> bool:
    return value is None or isinstance(value, str | int | float)


def cell(value: object) -> str:
    """Return a value as the text of one cell: lists and objects as JSON, null as nothing."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)
