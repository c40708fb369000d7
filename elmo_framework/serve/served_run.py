"""A run that is served: its inputs, its predictions and its description."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, final

from elmo_framework.data.inputs import PredictionInput
from elmo_framework.errors import DataError, RunError
from elmo_framework.experiment.assembly import Assembly
from elmo_framework.experiment.explain import layer_weights
from elmo_framework.experiment.inputs import InputReader
from elmo_framework.experiment.prediction_record import json_of
from elmo_framework.model.head import Head

_SUFFIX = re.compile(r"(\.tar\.gz|\.tgz|@[^@/]*)$")


class InputError(Exception):
    """An input that the client can correct; `index` counts from 0."""

    def __init__(self, message: str, index: int) -> None:
        super().__init__(message)
        self.index = index


class TooLongError(InputError):
    """An input with more words than the server accepts."""


@final
@dataclass(frozen=True, eq=False)
class ServedRun:
    """A `Service` of a `Worker`: predictions of a run.

    Attributes:
        name: in URLs.
        run: loaded.
        max_words: of one input.
        batch_size: number of inputs in a batch of the model.
    """

    cost: ClassVar[int] = 1
    name: str
    run: Assembly
    max_words: int
    batch_size: int

    @cached_property
    def reader(self) -> InputReader:
        return self.run.input_reader()

    def warm_up(self) -> None:
        """Predict once: the first prediction loads libraries, which takes seconds."""
        with suppress(InputError):  # not every task reads plain sentences
            self.compute(self.read(["A sentence."]))

    def read(self, values: Sequence[Any]) -> Sequence[PredictionInput[Any]]:
        """Tokenize the inputs of a request.

        Raises:
            InputError: one of them is not an input of the task, or has too many words.
        """
        return [self._input(value, index) for index, value in enumerate(values)]

    def compute(self, inputs: Sequence[PredictionInput[Any]]) -> Sequence[dict[str, Any]]:
        """Predict for inputs of similar length together; return the results in their order."""
        task = self.run.head().task
        order = sorted(range(len(inputs)), key=lambda index: task.num_tokens(inputs[index].example))
        arranged = [inputs[index] for index in order]
        results: list[dict[str, Any]] = [{}] * len(inputs)
        predictions = self.run.predictions(arranged, batch_size=self.batch_size)
        for index, predicted in zip(order, predictions, strict=True):
            results[index] = json_of(task, predicted)
        return results

    def description(self) -> dict[str, Any]:
        """Return what a client needs to know: the keys of an input and the weights of layers."""
        head = self.run.head()
        task = head.task
        return {
            "name": self.name,
            "task": type(task).__name__.removesuffix("Task"),
            "inputs": list(task.input_keys),
            "layer_weights": layer_weights(head),
            "has_explanations": type(head).label_scores is not Head.label_scores,
        }

    def _input(self, value: Any, index: int) -> PredictionInput[Any]:
        task = self.run.head().task
        try:
            made = self.reader.of(value)
        except DataError as error:
            causes = (error, error.__cause__)
            if any(getattr(each, "path", None) for each in causes):  # a file of the server
                raise
            raise InputError(str(error), index) from error
        num_words = sum(map(len, task.sentences(made.example)))
        if num_words > self.max_words:
            message = f"this input has {num_words:,} words; at most {self.max_words:,} are accepted"
            raise TooLongError(message, index)
        return made


def run_name(path: Path) -> str:
    """Return the name of a run: that of its folder, or of its archive without the suffix."""
    return _SUFFIX.sub("", (path if "://" in str(path) else path.resolve()).name) or "run"


def require_distinct(paths: Sequence[Path]) -> None:
    """Raise RunError if two runs have the same name."""
    names: dict[str, Path] = {}
    for path in paths:
        name = run_name(path)
        if name in names:
            raise RunError(
                f"two runs are named {name!r}: {names[name]} and {path}; rename a folder, as the "
                "name is part of the URL"
            )
        names[name] = path
