"""The formats that the predictions of a run are written in."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from elmo_framework.common.errors import RunError, allowed
from elmo_framework.model.task import HeadTask, PredictionFormat


def prediction_format(task: HeadTask[Any, Any], name: str) -> PredictionFormat:
    """Return a format of a task: one of its own, or `jsonl`.

    Raises:
        RunError: the task has none of that name.
    """
    known: dict[str, PredictionFormat] = {"jsonl": partial(_json_lines, task), **task.formats}
    if name not in known:
        raise RunError(f"{name!r} is no format for predictions of this run; {allowed(name, known)}")
    return known[name]


def _json_lines(task: HeadTask[Any, Any], predictions: Iterable[tuple[Any, Any]]) -> Iterator[str]:
    for prediction, example in predictions:
        yield json.dumps(task.to_json(prediction, example), ensure_ascii=False) + "\n"
