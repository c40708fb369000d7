"""Explanations of predictions, for a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

from elmo_framework.errors import RunError
from elmo_framework.serve.answers import ExplanationRequest
from elmo_framework.serve.served_run import InputError, ServedRun


@final
@dataclass(frozen=True, eq=False)
class ExplanationService:
    """A `Service` of a `Worker`: how much each word of an input speaks for its label."""

    cost: ClassVar[int] = 50  # the points of the integral
    run: ServedRun

    def read(self, values: Sequence[ExplanationRequest]) -> Sequence[tuple[Any, str | int | None]]:
        inputs = self.run.read([each.input for each in values])
        return [(each.example, request.word) for each, request in zip(inputs, values, strict=True)]

    def compute(self, inputs: Sequence[tuple[Any, str | int | None]]) -> Sequence[dict[str, Any]]:
        try:
            return [
                self.run.run.explainer(word=word)(example).to_json() for example, word in inputs
            ]
        except RunError as error:  # of another kind of head, or of a word that is not there
            raise InputError(str(error), 0) from error
