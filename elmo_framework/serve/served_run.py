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
from elmo_framework.nn.part import freeze_parts

_SUFFIX = re.compile(r"\.(tar\.gz|tgz)$")
_REVISION = re.compile(r"@[^@/]*$")


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
        """Prepare the weights, and predict once: that loads libraries, which takes seconds."""
        freeze_parts(self.run.model, "float32")  # a served model does not change any more
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
        by_length = [inputs[index] for index in order]
        results: list[dict[str, Any]] = [{}] * len(inputs)
        predictions = self.run.predictions(by_length, batch_size=self.batch_size)
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
            "inputs": self.reader.input_keys,
            "layer_weights": layer_weights(head),
            "has_explanations": type(head).label_scores is not Head.label_scores,
        }

    def _input(self, value: Any, index: int) -> PredictionInput[Any]:
        task = self.run.head().task
        try:
            prediction_input = self.reader.of(value)
        except DataError as error:
            causes = (error, error.__cause__)
            if any(getattr(each, "path", None) for each in causes):  # a file of the server
                raise
            raise InputError(str(error), index) from error
        num_words = sum(map(len, task.sentences(prediction_input.example)))
        require_length(num_words, self.max_words, index)
        return prediction_input


def require_length(num_words: int, max_words: int, index: int) -> None:
    """Raise TooLongError if an input has too many words."""
    if num_words > max_words:
        message = f"this input has {num_words:,} words; at most {max_words:,} are accepted"
        raise TooLongError(message, index)


def model_name(place: str) -> str:
    """Return the name of a run or an encoder: its folder, or its archive without the suffix."""
    path = Path(place)
    suffix = _REVISION if place.startswith("hf://") else _SUFFIX
    return suffix.sub("", (path if "://" in place else path.resolve()).name) or "model"


def require_distinct(places: Sequence[str]) -> None:
    """Raise RunError if two runs or encoders have the same name."""
    names: dict[str, str] = {}
    for place in places:
        name = model_name(place)
        if name in names:
            raise RunError(
                f"two models are named {name!r}: {names[name]} and {place}; rename a folder, as "
                "the name is part of the URL"
            )
        names[name] = place
