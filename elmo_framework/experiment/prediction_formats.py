"""The formats that the predictions of a run are written in."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, TypeAlias

from elmo_framework.data.inputs import PredictionInput
from elmo_framework.errors import RunError, allowed
from elmo_framework.model.task import HeadTask, PredictionFormat

InputFormat: TypeAlias = Callable[[Iterable[tuple[Any, PredictionInput[Any]]]], Iterator[str]]
"""Writes predictions with their inputs."""


def prediction_format(task: HeadTask[Any, Any], name: str) -> PredictionFormat:
    """Return a format of a task: one of its own, or `jsonl`.

    Raises:
        RunError: the task has none of that name.
    """
    known: dict[str, PredictionFormat] = {"jsonl": partial(_json_lines, task), **task.formats}
    if name not in known:
        raise RunError(f"{name!r} is no format for predictions of this run; {allowed(name, known)}")
    return known[name]


def input_format(task: HeadTask[Any, Any], name: str) -> InputFormat:
    """Return a format of a task for the predictions of inputs.

    In `jsonl` the fields of an input stand before what is predicted.

    Raises:
        RunError: the task has none of that name.
    """
    if name == "jsonl":
        return partial(_json_lines_with_fields, task)
    written = prediction_format(task, name)
    return lambda predictions: written(
        (prediction, each.example) for prediction, each in predictions
    )


def _json_lines_with_fields(
    task: HeadTask[Any, Any], predictions: Iterable[tuple[Any, PredictionInput[Any]]]
) -> Iterator[str]:
    for prediction, each in predictions:
        output = each.output(task.to_json(prediction, each.example))
        yield json.dumps(output, ensure_ascii=False) + "\n"


def _json_lines(task: HeadTask[Any, Any], predictions: Iterable[tuple[Any, Any]]) -> Iterator[str]:
    for prediction, example in predictions:
        yield json.dumps(task.to_json(prediction, example), ensure_ascii=False) + "\n"
