"""Requests and their answers."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from elmo_framework.serve import app
from elmo_framework.serve.answers import to_bytes
from elmo_framework.serve.app import Server
from tests.served_runs import ENCODERS, RUNS, CannedNeighbors, CannedRun, canned_server

pytest.importorskip("fastapi")
from fastapi.testclient import TestClient

JSON = {"Content-Type": "application/json"}
LIMITS = {"max_body": 2_000, "max_inputs": 3, "max_characters": 100, "max_waiting": 3}


@pytest.fixture
def server() -> Iterator[Server]:
    server = canned_server(**LIMITS)
    yield server
    server.worker.close()


@pytest.fixture
def client(server: Server) -> TestClient:
    return TestClient(server.application)


def error(answer: Any) -> dict[str, Any]:
    """Return the description of an error, which has no more than these keys."""
    body = answer.json()
    assert set(body) == {"error"}
    assert set(body["error"]) - {"input"} == {"status", "code", "message"}
    assert body["error"]["status"] == answer.status_code
    assert answer.headers["content-type"] == "application/json"
    return body["error"]


def test_predictions_are_in_the_order_of_the_inputs(client: TestClient) -> None:
    inputs = ["Anna left", {"tokens": ["Lisbon"]}]
    answer = client.post("/predict/ner", json={"inputs": inputs}).json()
    assert answer["run"] == "ner"
    assert [each["tags"] for each in answer["predictions"]] == [["B-PER", "O"], ["B-LOC"]]
    assert answer["predictions"][0]["spans"][0]["end_char"] == 4


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_runs_are_described(client: TestClient, run: CannedRun) -> None:
    described = {each["name"]: each for each in client.get("/runs").json()["runs"]}
    expected = {**run.description(), "has_neighbors": run.name == "ner"}
    assert described[run.name] == expected


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("/predict/ner", '{"inputs": [', 400, "the body is not JSON"),
        ("/predict/ner", "[" * 1_900, 400, "too many lists in lists"),
        ("/predict/ner", b'{"inputs": ["caf\xe9"]}', 400, "not UTF-8"),
        ("/predict/ner", "", 422, ""),
        ("/predict/ner", "[]", 422, "dictionary"),
        ("/predict/ner", '{"input": ["a"]}', 422, "unknown key 'input'; choose from inputs. Did"),
        ("/predict/ner", "{}", 422, "inputs: Field required"),
        ("/predict/ner", '{"inputs": []}', 422, "at least 1 item"),
        ("/predict/ner", '{"inputs": ["a", 3]}', 422, "inputs.1: expected a sentence or an object"),
        ("/predict/ner", '{"inputs": ["a"], "strict": 1}', 422, "body: unknown key 'strict'"),
        ("/explain/ner", '{"input": 3}', 422, "input: expected a sentence or an object"),
        ("/explain/ner", '{"input": "a", "word": -1}', 422, "word: expected a word, or its pos"),
        ("/neighbors/ner", '{"words": [3], "position": 0}', 422, "words.0: Input should be a"),
        ("/predict/ner", '{"inputs": ["\\ud800"]}', 422, "not valid Unicode"),
        ("/predict/ner", '{"inputs": [{"tokens": ["a"], "n": NaN}]}', 422, "a number that JSON"),
        ("/predict/ner", json.dumps({"inputs": ["a"] * 4}), 413, "4 inputs; at most 3"),
        ("/predict/ner", json.dumps({"inputs": ["a" * 101]}), 413, "100 characters"),
        ("/predict/ner", json.dumps({"inputs": [{"tokens": ["a" * 51] * 2}]}), 413, "100 char"),
        ("/predict/ner", json.dumps({"inputs": ["a" * 2_000]}), 413, "more than 2,000 bytes"),
        ("/predict/nerr", '{"inputs": ["a"]}', 404, "Did you mean 'ner'?"),
        ("/predict", '{"inputs": ["a"]}', 404, "name one, as in /predict/RUN"),
        ("/explain", '{"input": "a"}', 404, "name one, as in /explain/RUN"),
        ("/neighbors", '{"words": ["a"], "position": 0}', 404, "as in /neighbors/RUN"),
        ("/nothing", "{}", 404, "unknown path '/nothing'; choose from /, /embed, "),
        ("/predit", "{}", 404, "Did you mean '/predict'?"),
        ("/runs", "{}", 405, "POST is not allowed for '/runs'; use GET"),
        ("/neighbors/pos", '{"words": ["a"], "position": 0}', 404, "without --corpus"),
        ("/neighbors/ner", '{"words": ["a"], "position": -1}', 422, "position"),
        ("/embed/bilm", '{"inputs": ["a", 3]}', 422, "inputs.1: expected a sentence or an object"),
        ("/embed/bilm", '{"inputs": [{"words": ["a"]}]}', 422, "or its words as 'tokens' alone"),
        ("/embed/bilm", '{"inputs": [{"tokens": ["a", 1]}]}', 422, "found {'tokens': ['a', 1]}"),
        ("/embed/bilm", '{"inputs": [{"tokens": "a"}]}', 422, "found {'tokens': 'a'}"),
        ("/embed/bilm", '{"inputs": ["a"], "layers": "topp"}', 422, "Did you mean 'top'?"),
        ("/embed/bilm", '{"inputs": ["a"], "layers": [1.5]}', 422, "layers: expected 'all', 'av"),
        ("/embed/bilm", '{"inputs": ["a"], "layers": 2}', 422, "a number from -2 to 1"),
        ("/embed/bilm", '{"inputs": ["a"], "pool": "maxx"}', 422, "pool: Input should be 'none'"),
        ("/embed/bilm", '{"inputs": ["a"], "pool": "maxx"}', 422, "Did you mean 'max'?"),
        ("/embed/bilm", '{"inputs": []}', 422, "inputs: List should have at least 1 item"),
        ("/embed/bilm", '{"inputs": ["a b c d e f g"]}', 413, "7 words; at most 6"),
        ("/embed/bilm", '{"inputs": ["a b c", "a b c d"]}', 413, "more than 24 numbers"),
        ("/embed/mini", '{"inputs": ["a"]}', 404, "unknown encoder 'mini'; choose from bilm"),
        ("/embed/ner", '{"inputs": ["a"]}', 404, "unknown encoder 'ner'"),
        ("/predict/bilm", '{"inputs": ["a"]}', 404, "unknown run 'bilm'"),
    ],
)
def test_bad_requests_get_one_shape(
    client: TestClient, path: str, body: str | bytes, status: int, message: str
) -> None:
    answer = client.post(path, content=body, headers=JSON)
    assert answer.status_code == status
    assert message in error(answer)["message"]


def test_input_too_deep_for_python_is_refused(client, monkeypatch) -> None:
    def fail(value: object) -> bytes:
        if isinstance(value, str):
            raise RecursionError
        return to_bytes(value)

    monkeypatch.setattr(app, "to_bytes", fail)
    answer = client.post("/predict/ner", json={"inputs": ["a"]})
    assert answer.status_code == 422
    assert "too many lists in lists" in error(answer)["message"]


def test_characters_of_an_input_are_those_of_its_texts(client: TestClient) -> None:
    inputs = ['"' * 100, {"tokens": [*'"' * 50], "id": '"' * 50}]
    assert client.post("/predict/ner", json={"inputs": inputs}).status_code == 200


def test_neighbors_are_missing_for_their_own_reason() -> None:
    server = canned_server(corpus=Path("corpus.txt"))
    request = {"words": ["a"], "position": 0}
    answer = TestClient(server.application).post("/neighbors/pos", json=request)
    message = "no neighbors for 'pos': it does not read one frozen biLM"
    assert (answer.status_code, error(answer)["message"]) == (404, message)
    server.worker.close()


VECTORS = [[[0, 0.1], [1, 0.1]], [[0, 1.1], [1, 1.1]]]
"""Those of two words in two layers; see `tests.served_runs`."""


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, VECTORS),
        ({"layers": [-1]}, [VECTORS[1]]),
        ({"layers": 0}, VECTORS[0]),
        ({"layers": "top", "pool": "mean"}, [0.5, 1.1]),
        ({"pool": "first_last"}, [[0, 0.1, 1, 0.1], [0, 1.1, 1, 1.1]]),
    ],
)
@pytest.mark.parametrize("encoding", ["float", "base64"])
def test_vectors_are_those_that_were_asked_for(
    client: TestClient, options: dict[str, Any], expected: list[Any], encoding: str
) -> None:
    body = {"inputs": ["Anna left", {"tokens": ["an n", "left"]}], **options}
    answer = client.post("/embed", json={**body, "encoding_format": encoding}).json()
    assert answer["encoder"] == "bilm"
    assert [each["words"] for each in answer["embeddings"]] == [["Anna", "left"], ["an n", "left"]]
    for each in answer["embeddings"]:
        vectors = each["vectors"]
        if encoding == "base64":
            vectors = np.frombuffer(b64decode(vectors), "<f4").reshape(each["shape"])
            expected = np.float32(expected).tolist()
            vectors = vectors.tolist()
        assert vectors == expected


def test_numbers_of_vectors_are_those_of_a_request(client: TestClient) -> None:
    limit = ["a b c", "a b c"]  # of 4 numbers a word
    answers = [
        client.post("/embed", json={"inputs": inputs, **options}).status_code
        for inputs, options in (
            (limit, {}),
            ([*limit, "a"], {}),
            ([*limit, "a"], {"layers": "top"}),
            ([*limit, "a"], {"pool": "mean"}),
        )
    ]
    assert answers == [200, 413, 200, 200]


def test_encoders_are_described(client: TestClient) -> None:
    described = {"name": "bilm", "num_layers": 2, "dim": 2, "has_neighbors": False}
    assert client.get("/encoders").json()["encoders"] == [described]


def test_an_encoder_alone_is_no_run() -> None:
    job = canned_server().job
    server = Server([], ENCODERS, {"bilm": CannedNeighbors()}, job=job, token=None, hosts=None)
    client = TestClient(server.application)
    answer = client.post("/predict", json={"inputs": ["a"]})
    assert (answer.status_code, error(answer)["message"]) == (404, "this server has no run")
    for path in ("/neighbors/bilm", "/neighbors"):
        answer = client.post(path, json={"words": ["a"], "position": 0})
        assert answer.json()["num_compared"] == 2
    server.worker.close()


def test_the_only_run_explains_without_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    class CannedExplanations(CannedNeighbors):
        def __init__(self, run: CannedRun) -> None:
            self.name = run.name

        def compute(self, inputs: Sequence[Any]) -> Sequence[dict[str, Any]]:
            return [{"run": self.name} for _ in inputs]

    monkeypatch.setattr(app, "ExplanationService", CannedExplanations)
    job = canned_server().job
    server = Server(RUNS[:1], [], {}, job=job, token=None, hosts=None)
    answer = TestClient(server.application).post("/explain", json={"input": "a"})
    assert answer.json() == {"run": "ner"}
    server.worker.close()


def test_an_error_names_its_input(client: TestClient) -> None:
    answer = client.post("/predict/ner", json={"inputs": ["a", "a" * 101]})
    assert error(answer)["input"] == 1


@pytest.mark.parametrize("kind", [None, "text/plain", "application/x-www-form-urlencoded"])
def test_a_body_of_another_type_is_refused(client: TestClient, kind: str | None) -> None:
    # A form of another web page can send only such types without being asked.
    headers = {} if kind is None else {"Content-Type": kind}
    answer = client.post("/predict/ner", content='{"inputs": ["a"]}', headers=headers)
    assert (answer.status_code, error(answer)["code"]) == (415, "unsupported_media_type")


def test_a_body_without_a_length_is_limited(client: TestClient) -> None:
    pieces = (b"x" * 500 for _ in range(8))
    answer = client.post("/predict/ner", content=pieces, headers=JSON)
    assert error(answer)["code"] == "too_large"


def test_a_token_is_needed_but_for_the_page_and_health() -> None:
    server = canned_server(token="secret")
    client = TestClient(server.application)
    body = {"inputs": ["a"]}
    for value in (None, "secret", "Bearer wrong", "Basic secret", "Bearer sécret"):
        headers = {} if value is None else {"Authorization": value.encode()}
        answer = client.post("/predict/ner", json=body, headers=headers)
        assert error(answer)["code"] == "unauthorized", value
        assert answer.headers["www-authenticate"] == "Bearer"
    headers = {"Authorization": "Bearer secret"}
    assert client.post("/predict/ner", json=body, headers=headers).status_code == 200
    statuses = {
        path: client.get(path).status_code for path in ("/", "/health", "/runs", "/metrics")
    }
    assert statuses == {"/": 200, "/health": 200, "/runs": 401, "/metrics": 401}
    assert client.get("/openapi.json").status_code == 401
    server.worker.close()


def test_another_host_is_refused() -> None:
    server = Server(RUNS, [], {}, job=canned_server().job, token=None, hosts={"127.0.0.1", "[::1]"})
    client = TestClient(server.application)
    statuses = {
        host: client.get("/health", headers={"Host": host}).status_code
        for host in ("127.0.0.1:8000", "127.0.0.1", "[::1]:8000", "evil.org", "127.0.0.1.evil.org")
    }
    assert [*statuses.values()] == [200, 200, 200, 400, 400]
    server.worker.close()


def test_the_schema_documents_a_stopped_server(client: TestClient) -> None:
    responses = client.get("/openapi.json").json()["paths"]["/health"]["get"]["responses"]
    assert set(responses) == {"200", "503"}


def test_a_full_queue_is_answered_with_503(server: Server, client: TestClient) -> None:
    server.worker._num_waiting = 2
    answer = client.post("/predict/ner", json={"inputs": ["a", "b"]})
    assert (answer.status_code, error(answer)["code"]) == (503, "overloaded")
    assert answer.headers["retry-after"] == "1"


def test_a_bug_is_logged_and_not_shown(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(self: object, inputs: object) -> None:
        raise FileNotFoundError("/secret/place")

    monkeypatch.setattr(CannedRun, "compute", fail)
    with caplog.at_level(logging.ERROR):
        answer = client.post("/predict/ner", json={"inputs": ["a"]})
    assert (answer.status_code, error(answer)["code"]) == (500, "internal_error")
    assert "secret" not in answer.text
    assert "/secret/place" in caplog.text


def test_a_path_without_a_slash_is_answered(server: Server) -> None:
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "OPTIONS", "path": "*", "query_string": b"", "headers": []}
    asyncio.run(server.application(scope, receive, send))
    assert sent[0]["status"] == 404
    assert b'{path="other",status="404"} 1.0' in server.server_metrics.text()


def test_only_an_input_has_its_position_in_an_error(client: TestClient) -> None:
    answer = client.post("/neighbors/ner", json={"words": ["a", 3], "position": 0})
    assert "input" not in error(answer)


def test_a_slow_body_is_given_up() -> None:
    server = canned_server(timeout=1)
    object.__setattr__(server.application, "timeout", 0.01)
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(60)
        raise AssertionError

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/predict/ner", "query_string": b""}
    headers = [(b"host", b"x"), (b"content-type", b"application/json")]
    asyncio.run(server.application({**scope, "headers": headers}, receive, send))
    assert sent[0]["status"] == 408
    assert (b"connection", b"close") in sent[0]["headers"]
    server.worker.close()


def test_neighbors_of_a_word(client: TestClient) -> None:
    answer = client.post("/neighbors/ner", json={"words": ["a", "bank"], "position": 1}).json()
    assert answer["layers"][0]["neighbors"][0]["parts"][1] == "bank"


def test_metrics_count_answers_and_batches(client: TestClient) -> None:
    client.post("/predict/ner", json={"inputs": ["a", "b"]})
    client.get("/no/such/path")
    text = client.get("/metrics").text
    for line in (
        'elmo_requests_total{path="/predict",status="200"} 1.0',
        'elmo_requests_total{path="other",status="404"} 1.0',
        'elmo_request_seconds_count{path="/predict"} 1.0',
        "elmo_batch_inputs_sum 2.0",
        "elmo_waiting_inputs 0.0",
    ):
        assert f"\n{line}\n" in text, line


def test_the_interface_is_described(client: TestClient) -> None:
    described = client.get("/openapi.json").json()
    assert "/predict/{run}" in described["paths"]
    post = described["paths"]["/predict/{run}"]["post"]
    assert post["responses"]["422"]["content"]["application/json"]["schema"]["$ref"].endswith(
        "/ErrorAnswer"
    )


def test_the_page_may_run_its_own_script_alone(client: TestClient) -> None:
    answer = client.get("/")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    for tag in ("style", "script"):
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", answer.text, re.DOTALL)
        digest = b64encode(sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert not re.search(r"https?://|innerHTML|insertAdjacentHTML|eval\(", answer.text)
