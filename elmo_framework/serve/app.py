"""The application: predictions, vectors, neighbors, health, metrics and the page, over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeVar, final

from elmo_framework.errors import allowed
from elmo_framework.io.extras import import_extra
from elmo_framework.serve.answers import (
    EmbeddingAnswer,
    EmbeddingRequest,
    ErrorAnswer,
    ExplanationRequest,
    HttpError,
    Input,
    PredictionAnswer,
    PredictionRequest,
    WordRequest,
    internal_error,
    invalid_request,
    to_bytes,
)
from elmo_framework.serve.explanation import ExplanationService
from elmo_framework.serve.guard import Application, Guard
from elmo_framework.serve.job import ServingJob
from elmo_framework.serve.page import Page
from elmo_framework.serve.served_encoder import RequestedSentence, ServedEncoder
from elmo_framework.serve.served_run import InputError, ServedRun, TooLongError
from elmo_framework.serve.server_metrics import ServerMetrics
from elmo_framework.serve.worker import OverloadedError, Service, StoppingError, Worker
from elmo_framework.version import VERSION

ModelT = TypeVar("ModelT")

_JSON = "application/json"
_ERRORS = {
    400: "The body is not JSON.",
    401: "The token is missing or wrong.",
    404: "There is no such run or encoder.",
    413: "The body, an input or the number of inputs is too large.",
    415: "The body is of another type than JSON.",
    422: "An input is not one of the task, or there is no such layer.",
    503: "Too many inputs wait; try again.",
}


@final
class Server:
    """Runs and encoders with the worker that computes for them, as an ASGI application.

    Args:
        runs: with different names.
        encoders: likewise.
        neighbors: find neighbors of a word, by the names of runs and encoders.
        job: the limits of requests.
        token: that requests need; None for none.
        hosts: the names by which the server may be called; None for any.
    """

    def __init__(
        self,
        runs: Sequence[ServedRun],
        encoders: Sequence[ServedEncoder],
        neighbors: Mapping[str, Service],
        *,
        job: ServingJob,
        token: str | None,
        hosts: Collection[str] | None,
    ) -> None:
        self._runs, self._neighbors, self.job = {run.name: run for run in runs}, neighbors, job
        self._encoders = {encoder.name: encoder for encoder in encoders}
        self._page = Page.read()
        self.server_metrics = ServerMetrics(lambda: self.worker.num_waiting)
        self.worker = Worker(
            batch_size=job.batch_size,
            max_waiting=job.max_waiting,
            observe=self.server_metrics.count_batch,
        )
        fastapi = import_extra("fastapi", "serve")
        app = fastapi.FastAPI(
            title="elmo serve",
            version=VERSION,
            docs_url=None,
            redoc_url=None,
            redirect_slashes=False,
        )
        self._response = fastapi.Response
        self._add_routes(app)
        self._add_error_handlers(app)
        self.application: Application = Guard(
            app,
            self.server_metrics,
            paths={f"/{route.path.split('/')[1]}" for route in app.routes},
            token=token,
            hosts=hosts,
            max_body=job.max_body,
            timeout=job.timeout,
        )

    @property
    def _models(self) -> dict[str, ServedRun | ServedEncoder]:
        return {**self._runs, **self._encoders}

    async def predict_with_only_run(self, request: PredictionRequest) -> Any:
        """Predict with the only run."""
        return await self.predict(_only(self._runs, "/predict/RUN"), request)

    async def predict(self, run: str, request: PredictionRequest) -> Any:
        """Predict with a run; `/runs` lists the keys of its inputs."""
        served = _named(self._runs, run, "run")
        self._check(request.inputs)
        predictions = await self._compute(served, request.inputs)
        return self._json({"run": served.name, "predictions": list(predictions)})

    async def embed_with_only_encoder(self, request: EmbeddingRequest) -> Any:
        """Embed with the only encoder."""
        return await self.embed(_only(self._encoders, "/embed/ENCODER"), request)

    async def embed(self, encoder: str, request: EmbeddingRequest) -> Any:
        """Embed with an encoder; `/encoders` lists their layers."""
        served = _named(self._encoders, encoder, "encoder")
        self._check(request.inputs)
        try:
            served.num_layers(request)
        except ValueError as error:
            raise HttpError(422, str(error)) from None
        sentences = [RequestedSentence(value, request) for value in request.inputs]
        embeddings = await self._compute(served, sentences)
        return self._json({"encoder": served.name, "embeddings": list(embeddings)})

    async def explain_with_only_run(self, request: ExplanationRequest) -> Any:
        """Score how much each word speaks for the label of the only run."""
        return await self.explain(_only(self._runs, "/explain/RUN"), request)

    async def explain(self, run: str, request: ExplanationRequest) -> Any:
        """Score how much each word speaks for the label."""
        service = ExplanationService(_named(self._runs, run, "run"))
        self._check([request.input])
        (result,) = await self._compute(service, [request])
        return self._json(result)

    async def find_neighbors_with_only_model(self, request: WordRequest) -> Any:
        """Find the nearest uses of a word with the only run or encoder."""
        return await self.find_neighbors(_only(self._models, "/neighbors/RUN"), request)

    async def find_neighbors(self, run: str, request: WordRequest) -> Any:
        """Find the uses of a word in the corpus that are nearest to its use in a sentence."""
        name = _named(self._models, run, "run or encoder").name
        if name not in self._neighbors:
            is_given = self.job.corpus is not None
            reason = "it does not read one frozen biLM" if is_given else "started without --corpus"
            raise HttpError(404, f"no neighbors for {name!r}: {reason}")
        self._check([{"words": request.words}])
        (result,) = await self._compute(self._neighbors[name], [request])
        return self._json(result)

    async def list_runs(self) -> Any:
        """List the runs: their task, the keys of their inputs, the weights of their layers."""
        return self._json({"version": VERSION, "runs": self._descriptions(self._runs)})

    async def list_encoders(self) -> Any:
        """List the encoders: their number of layers and the dimension of a layer."""
        return self._json({"version": VERSION, "encoders": self._descriptions(self._encoders)})

    async def health(self) -> Any:
        """Report whether the server computes."""
        is_alive = self.worker.is_alive
        return self._json({"status": "ok" if is_alive else "stopped"}, 200 if is_alive else 503)

    async def metrics(self) -> Any:
        """Return counters and times in the text format of Prometheus."""
        text, media_type = self.server_metrics.text(), self.server_metrics.content_type
        return self._response(text, media_type=media_type)

    async def show_page(self) -> Any:
        return self._response(self._page.html, media_type="text/html", headers=self._page.headers)

    def _add_routes(self, app: Any) -> None:
        errors = {
            status: {"model": ErrorAnswer, "description": text} for status, text in _ERRORS.items()
        }
        posts: dict[str, Any] = {"methods": ["POST"], "responses": errors}
        predicts = {**posts, "response_model": PredictionAnswer}
        app.add_api_route("/predict", self.predict_with_only_run, **predicts)
        app.add_api_route("/predict/{run}", self.predict, **predicts)
        embeds = {**posts, "response_model": EmbeddingAnswer}
        app.add_api_route("/embed", self.embed_with_only_encoder, **embeds)
        app.add_api_route("/embed/{encoder}", self.embed, **embeds)
        app.add_api_route("/explain", self.explain_with_only_run, **posts)
        app.add_api_route("/explain/{run}", self.explain, **posts)
        app.add_api_route("/neighbors", self.find_neighbors_with_only_model, **posts)
        app.add_api_route("/neighbors/{run}", self.find_neighbors, **posts)
        app.add_api_route("/runs", self.list_runs)
        app.add_api_route("/encoders", self.list_encoders)
        stopped = {503: {"description": "The server no longer computes; start it again."}}
        app.add_api_route("/health", self.health, responses=stopped)
        app.add_api_route("/metrics", self.metrics)
        app.add_api_route("/", self.show_page, include_in_schema=False)

    def _add_error_handlers(self, app: Any) -> None:
        exceptions = import_extra("fastapi.exceptions", "serve")

        async def answer(request: Any, error: HttpError) -> Any:
            retry = {"Retry-After": "1"} if error.status == 503 else {}
            return self._response(error.body, error.status, media_type=_JSON, headers=retry)

        paths = [route.path for route in app.routes]

        async def answer_http(request: Any, error: Any) -> Any:
            path, message = request.url.path, str(error.detail)
            match error.status_code:
                case 404:
                    message = f"unknown path {path!r}; {allowed(path, paths)}"
                case 405:
                    methods = (error.headers or {}).get("Allow", "GET")
                    message = f"{request.method} is not allowed for {path!r}; use {methods}"
                case 400:  # FastAPI's, for what `json` does not raise as a JSON error
                    message = "the body is not JSON: not UTF-8, or too many lists in lists"
            return await answer(request, HttpError(error.status_code, message))

        async def answer_invalid(request: Any, error: Any) -> Any:
            return await answer(request, invalid_request(error.errors()))

        async def answer_bug(request: Any, error: Exception) -> Any:
            return await answer(request, internal_error())  # it is raised again, and logged

        app.add_exception_handler(Exception, answer_bug)
        app.add_exception_handler(HttpError, answer)
        # Starlette's, of which FastAPI's is a kind.
        app.add_exception_handler(exceptions.HTTPException.__mro__[1], answer_http)
        app.add_exception_handler(exceptions.RequestValidationError, answer_invalid)

    def _descriptions(
        self, models: Mapping[str, ServedRun] | Mapping[str, ServedEncoder]
    ) -> list[dict[str, Any]]:
        return [
            {**model.description(), "has_neighbors": name in self._neighbors}
            for name, model in models.items()
        ]

    def _check(self, inputs: Sequence[Input]) -> None:
        """Raise HttpError for what is refused before it is tokenized."""
        job = self.job
        if len(inputs) > job.max_inputs:
            message = f"{len(inputs):,} inputs; at most {job.max_inputs:,} are accepted"
            raise HttpError(413, message)
        for index, value in enumerate(inputs):
            try:
                to_bytes(value)
            except (ValueError, RecursionError) as error:
                message = (
                    "text that is not valid Unicode, a number that JSON does not have, or too "
                    "many lists in lists"
                )
                raise HttpError(422, message, index=index) from error
            if _num_characters(value) > job.max_characters:
                message = f"an input may have at most {job.max_characters:,} characters"
                raise HttpError(413, message, index=index)

    async def _compute(self, service: Service, values: Sequence[Any]) -> Sequence[Any]:
        try:
            return await asyncio.wrap_future(self.worker.submit(service, values))
        except OverloadedError:
            raise HttpError(503, "too many inputs wait; try again") from None
        except StoppingError:
            raise HttpError(503, "the server is stopping") from None
        except InputError as error:
            status = 413 if isinstance(error, TooLongError) else 422
            raise HttpError(status, str(error), index=error.index) from None

    def _json(self, value: Any, status: int = 200) -> Any:
        return self._response(to_bytes(value), status, media_type=_JSON)


def _num_characters(value: object) -> int:
    """Return the number of characters of a text, or of all texts in an object."""
    total, remaining = 0, [value]
    while remaining:
        match remaining.pop():
            case str(text):
                total += len(text)
            case dict(items):
                remaining += items.values()
            case list(items):
                remaining += items
    return total


def _named(models: Mapping[str, ModelT], name: str, kind: str) -> ModelT:
    """Return the run or the encoder with a name."""
    if not models:
        raise HttpError(404, f"this server has no {kind}")
    if name not in models:
        raise HttpError(404, f"unknown {kind} {name!r}; {allowed(name, models)}")
    return models[name]


def _only(models: Mapping[str, Any], path: str) -> str:
    """Return the name of the only run or encoder; nothing if there is none."""
    if len(models) > 1:
        raise HttpError(404, f"name one, as in {path}; {allowed('', models)}")
    return next(iter(models), "")
