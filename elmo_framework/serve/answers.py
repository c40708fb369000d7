"""Requests and answers in JSON: their models, and errors in one shape."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, StrictInt, model_validator

from elmo_framework.errors import allowed, hint, with_hint
from elmo_framework.layers.pool import Pool

Input: TypeAlias = str | dict[str, Any]

_CODES = {
    400: "bad_request",
    401: "unauthorized",
    404: "not_found",
    405: "method_not_allowed",
    408: "timeout",
    413: "too_large",
    415: "unsupported_media_type",
    422: "invalid_input",
    500: "internal_error",
    503: "overloaded",
}


_SEVERAL_TYPES = {
    "input": "expected a sentence or an object",
    "inputs": "expected a sentence or an object",
    "word": "expected a word, or its position from 0",
    "layers": "expected 'all', 'average', 'top', a number or a list of numbers",
}
"""What is expected in fields of several types, each of which has a problem of its own."""


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _check_keys(cls, values: object) -> object:
        """Name the allowed keys, which pydantic's own message about an unknown one does not."""
        keys = cls.model_fields
        unknown = [key for key in values if key not in keys] if isinstance(values, dict) else []
        if unknown:
            raise ValueError(f"unknown key {unknown[0]!r}; {allowed(unknown[0], keys)}")
        return values


class PredictionRequest(_Request):
    """Inputs to predict for: sentences, or objects with the keys of the task."""

    inputs: list[Input] = Field(min_length=1)


class EmbeddingRequest(_Request):
    """Sentences to embed: texts, or objects with `tokens`.

    `base64` are the bytes of the numbers as little-endian float32, in C order, next to their shape.
    """

    inputs: list[Input] = Field(min_length=1)
    layers: Literal["all", "average", "top"] | StrictInt | list[StrictInt] = "all"
    pool: Pool = "none"
    encoding_format: Literal["float", "base64"] = "float"


class WordRequest(_Request):
    """A word of a sentence, by its position from 0."""

    words: list[str] = Field(min_length=1)
    position: int = Field(ge=0)


class ExplanationRequest(_Request):
    """An input to explain; of a tagger, also a word, by its text or its position from 0."""

    input: Input
    word: Annotated[StrictInt, Field(ge=0)] | str | None = None


class PredictionAnswer(BaseModel):
    """A prediction for each input, in the order of the inputs."""

    run: str
    predictions: list[dict[str, Any]]


class EmbeddingAnswer(BaseModel):
    """Words and vectors of each input, in the order of the inputs."""

    encoder: str
    embeddings: list[dict[str, Any]]


class ErrorDescription(BaseModel):
    """An error; `input` is the position of the input concerned, from 0."""

    status: int
    code: str
    message: str
    input: int | None = None


class ErrorAnswer(BaseModel):
    """The answer to every request that fails."""

    error: ErrorDescription


class HttpError(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: int, message: str, *, index: int | None = None) -> None:
        super().__init__(message)
        self.status, self.index = status, index

    @property
    def body(self) -> bytes:
        code = _CODES.get(self.status, "error")
        index = {} if self.index is None else {"input": self.index}
        return to_bytes(
            {"error": {"status": self.status, "code": code, "message": str(self), **index}}
        )


def internal_error() -> HttpError:
    """Return the answer to a request that met a bug, without details."""
    return HttpError(500, "internal error; see the log of the server")


def invalid_request(problems: Sequence[Mapping[str, Any]]) -> HttpError:
    """Return the first problem that pydantic found in a body."""
    problem = problems[0]
    if problem["type"] == "json_invalid":
        return HttpError(400, f"the body is not JSON: {problem['ctx']['error']}")
    place = [str(part) for part in problem["loc"][1:]]
    if problem["type"] == "value_error":
        message = str(problem["ctx"]["error"])
    elif place[:1] != place[-1:] and place[0] in _SEVERAL_TYPES and not place[-1].isdigit():
        message = _SEVERAL_TYPES[place[0]]
        place.pop()  # the name of the type
    else:
        message = problem["msg"]
    choices = re.findall(r"'(\w+)'", message)
    if isinstance(problem["input"], str):
        message = with_hint(message, hint(problem["input"], choices))
    index = int(place[1]) if place[:1] == ["inputs"] and len(place) > 1 else None
    return HttpError(422, f"{'.'.join(place) or 'body'}: {message}", index=index)


def to_bytes(value: Any) -> bytes:
    """Return JSON in UTF-8.

    Raises:
        ValueError: it has a number that JSON does not, or a text that is not valid Unicode.
    """
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
