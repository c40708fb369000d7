"""Requests and answers in JSON: their models, and errors in one shape."""

from __future__ import annotations

import json
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, StrictInt

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


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid")


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
    """An input to explain; of a tagger, also the position of a word from 0."""

    input: Input
    word: int | None = Field(default=None, ge=0)


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


def to_bytes(value: Any) -> bytes:
    """Return JSON in UTF-8.

    Raises:
        ValueError: it has a number that JSON does not, or a text that is not valid Unicode.
    """
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
