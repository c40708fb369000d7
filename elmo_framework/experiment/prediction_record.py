"""Predictions with identifiers, character offsets and probabilities: JSON objects and tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from elmo_framework.data.annotation import PredictionRecord, SourceText
from elmo_framework.data.inputs import Predicted
from elmo_framework.model.task import HeadTask


def has_annotations(task: HeadTask[Any, Any]) -> bool:
    """Return whether a task predicts labeled spans."""
    return type(task).annotations is not HeadTask.annotations


def record_of(task: HeadTask[Any, Any], predicted: Predicted) -> PredictionRecord:
    """Find the characters and the labeled spans of a prediction."""
    prediction, source, probabilities = predicted
    text = SourceText.of(source, [*task.sentences(source.example)])
    annotations = task.annotations(prediction, source.example)
    return PredictionRecord(prediction, source, text, annotations, probabilities)


def json_of(task: HeadTask[Any, Any], predicted: Predicted) -> dict[str, Any]:
    """Return a prediction as one JSON object: the fields of its input, then what was predicted.

    Labeled spans have their characters and their probabilities, and `offsets` has the characters of
    each word.
    """
    prediction, source, _ = predicted
    output = task.to_json(prediction, source.example)
    if has_annotations(task):
        record = record_of(task, predicted)
        output["offsets"] = list(map(list, record.source.offsets))
        objects = task.annotated_objects(output)
        for each, place in zip(objects, _places(record), strict=False):
            each |= place
    return source.output(output)


def _places(record: PredictionRecord) -> Iterator[dict[str, Any]]:
    """Yield the characters of each annotation."""
    for span in record.annotations:
        start, end = record.source.characters(span)
        yield {"start_char": start, "end_char": end}
