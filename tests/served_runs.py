"""A server on loopback whose runs predict what each task would show, without a model.

Its encoder gives word i of a sentence in layer j the vector (i, j + 0.1).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from elmo_framework.api.encoder import PretrainedEncoder
from elmo_framework.data.inputs import Predicted, PredictionInput, raw_texts
from elmo_framework.data.labels import Classification
from elmo_framework.data.tokenizer import WhitespaceTokenizer
from elmo_framework.experiment.prediction_record import json_of
from elmo_framework.metrics.coreference import Resolution
from elmo_framework.metrics.squad import Answer
from elmo_framework.metrics.srl import Proposition
from elmo_framework.model.task import HeadTask
from elmo_framework.serve.app import Server
from elmo_framework.serve.job import ServingJob
from elmo_framework.serve.served_encoder import ServedEncoder
from elmo_framework.serve.server import http_server, listening_socket
from elmo_framework.tasks.classification.task import TextClassificationTask
from elmo_framework.tasks.coreference.task import CoreferenceTask
from elmo_framework.tasks.entailment.task import EntailmentTask
from elmo_framework.tasks.question_answering.task import QuestionAnsweringTask
from elmo_framework.tasks.srl.task import SrlTask
from elmo_framework.tasks.tagging.task import TaggingTask
from elmo_framework.tasks.word_senses.task import WordSenseTask

PASSAGE = "The 🦜 house opened in 1872. Anna Kovacs built it on the hill above Lisbon."


class CannedRun:
    """A run of a task whose predictions are the same for every input."""

    cost = 1

    def __init__(self, name: str, task: HeadTask, predict: Callable[[Any], Any]) -> None:
        self.name, self._task, self._predict = name, task, predict

    def description(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "task": type(self._task).__name__.removesuffix("Task"),
            "inputs": list(self._task.input_keys),
            "layer_weights": {"elmo.mix": {"s_0": 0.2, "s_1": 0.5, "s_2": 0.3, "gamma": 1.1}},
            "has_explanations": False,
        }

    def read(self, values: Sequence[Any]) -> Sequence[PredictionInput]:
        objects = [{"sentence": each} if isinstance(each, str) else each for each in values]
        keys, tokenizer = self._task.input_keys, WhitespaceTokenizer()
        return [
            PredictionInput(self._task.example(each, tokenizer), {}, raw_texts(each, keys))
            for each in objects
        ]

    def compute(self, inputs: Sequence[PredictionInput]) -> Sequence[dict[str, Any]]:
        predictions = [Predicted(self._predict(each.example), each) for each in inputs]
        return [json_of(self._task, predicted) for predicted in predictions]


class CannedNeighbors:
    """Two layers with one use of a word each."""

    cost = 1

    def read(self, values: Sequence[Any]) -> Sequence[Any]:
        return values

    def compute(self, inputs: Sequence[Any]) -> Sequence[dict[str, Any]]:
        return [self._neighbors(each.words[each.position]) for each in inputs]

    def _neighbors(self, word: str) -> dict[str, Any]:
        use = {"similarity": 0.71, "parts": ["far <b>from</b> the", word, "of yesterday"]}
        layers = [{"layer": layer, "neighbors": [use]} for layer in (1, 2)]
        return {"word": word, "num_compared": 2, "layers": layers}


def tags(example: Any) -> tuple[str, ...]:
    given = {"Anna": "B-PER", "Kovacs": "I-PER", "Lisbon": "B-LOC", "Ltd": "B-ORG"}
    return tuple(given.get(word, "O") for word in example.words)


def roles(example: Any) -> tuple[Proposition, ...]:
    first = ("B-ARG0", "I-ARG0", "B-V", "B-ARG1", "I-ARG1", "B-AM-TMP", "I-AM-TMP")
    second = ("O", "O", "O", "B-ARG1", "B-V")
    tagged = (
        (place, (*each, *["O"] * len(example.words))[: len(example.words)])
        for place, each in ((2, first), (4, second))
    )
    return tuple(Proposition(*each) for each in tagged)


def clusters(example: Any) -> Resolution:
    found = (((0, 1), (3, 3), (5, 8)), ((5, 5), (9, 9)))
    return Resolution(found, tuple(span for cluster in found for span in cluster))


def answer(example: Any) -> Answer:
    start = example.passage.text.index("Anna")
    return Answer("Anna Kovacs", start, start + 11, 0.125, "Anna Kovacs")


def topic(example: Any) -> Classification:
    return Classification("delivery", {"delivery": 0.75, "return": 0.2, "<i>payment</i>": 0.05})


def relation(example: Any) -> Classification:
    return Classification("entailment", {"entailment": 0.9, "neutral": 0.08, "contradiction": 0.02})


RUNS = (
    CannedRun("ner", TaggingTask(), tags),
    CannedRun("pos", TaggingTask(), lambda example: ("NNP",) * len(example.words)),
    CannedRun("topics", TextClassificationTask(), topic),
    CannedRun("pairs", EntailmentTask(), relation),
    CannedRun("srl", SrlTask(), roles),
    CannedRun("coref", CoreferenceTask(), clusters),
    CannedRun("squad", QuestionAnsweringTask(), answer),
    CannedRun("wsd", WordSenseTask(), lambda example: ["bank%1:17:01::"] * len(example.targets)),
)


class CannedEncoder(PretrainedEncoder):
    """Two layers of two dimensions."""

    num_layers, dim = 2, 2

    def __init__(self) -> None:
        pass

    def embed(self, sentences: Sequence[Sequence[str]], *, max_tokens: int = 4096) -> list[Any]:
        grids = (np.mgrid[:2, : len(words)].astype(np.float32) for words in sentences)
        return [np.stack([word, layer + np.float32(0.1)], axis=-1) for layer, word in grids]

    def read_words(
        self, sentences: Sequence[Sequence[str]], *, max_tokens: int = 4096
    ) -> Iterator[tuple[list[int], Any]]:
        yield from (([index], layers) for index, layers in enumerate(self.embed(sentences)))

    def score(self, sentences: Any, *, max_tokens: int = 4096) -> Any:
        raise NotImplementedError

    score_documents = load_softmax = score


ENCODERS = (
    ServedEncoder("bilm", CannedEncoder(), WhitespaceTokenizer(), max_words=6, max_numbers=24),
)


def canned_server(*, token: str | None = None, **limits: Any) -> Server:
    job = ServingJob(models=[], **limits)
    neighbors = {"ner": CannedNeighbors()}
    return Server(RUNS, ENCODERS, neighbors, job=job, token=token, hosts=None)


@contextmanager
def running(server: Server) -> Iterator[str]:
    """Answer requests in another thread; yield the URL."""
    with listening_socket("127.0.0.1", 0) as listener:
        listener.listen()
        process = http_server(server)
        thread = threading.Thread(target=process.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            process.should_exit = True
            thread.join()
            server.worker.close()
