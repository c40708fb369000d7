"""Milliseconds of one sentence, by each way to have it embedded, and through a server.

    python benchmarks/one_sentence.py --bilm mini --run runs/ner-mini

The words of the sentence are known after the first call, as most words of most sentences are. Each
row is a median; the ways take turns. Requests to `elmo serve` go over HTTP, on a connection that
stays open: for all layers of the biLM, in base64, and for a prediction of the run, which is the
work of the biLM and of the head of the task.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import statistics
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TypeAlias, get_args

import torch
from children import tied
from measuring import say, timed
from usage import ELMO

from elmo_framework import Elmo, batch_to_ids, load_bilm
from elmo_framework.experiment.load_run import load
from elmo_framework.io.process import keep_freed_memory
from elmo_framework.kernels.product import Precision
from elmo_framework.serve.served_run import ServedRun
from elmo_framework.serve.worker import Worker

Ways: TypeAlias = Mapping[str, Callable[[], object]]

_URL = re.compile(r"http://[\w.]+:(\d+)")
_OK = 200
_ROUNDS, _WARM_UP = 3, 5


def main() -> int:
    """Measure and print."""
    arguments = _arguments()
    torch.set_num_threads(arguments.threads)
    keep_freed_memory()
    words = [f"word{number}" for number in range(arguments.words)]
    with ExitStack() as servers:
        ways = {
            **_embedding(arguments.bilm, words),
            **_requests(arguments, words, servers),
            **_serving(arguments.run, words),
        }
        times = _medians(ways, arguments.repeats)
    say("| way | ms |\n|---|---|")
    for name, milliseconds in times.items():
        say(f"| {name} | {milliseconds:.1f} |")
    return 0


def _embedding(bilm: str, words: list[str]) -> Ways:
    ways: dict[str, Callable[[], object]] = {}
    for precision in get_args(Precision):
        encoder = load_bilm(bilm, device="cpu", precision=precision)
        ways[f"`load_bilm(...).embed`, {precision}"] = partial(encoder.embed, [words])
    elmo = Elmo(bilm, bilm, num_output_representations=1).eval()
    ways["`batch_to_ids` and `Elmo`"] = lambda: elmo(batch_to_ids([words]))
    return ways


def _serving(run: Path, words: list[str]) -> Ways:
    """Return a prediction as the server's thread computes it: alone, and with its worker."""
    served = ServedRun("run", load(run), max_words=1000, batch_size=32)
    served.warm_up()
    worker = Worker(batch_size=32, max_waiting=32)
    text = " ".join(words)
    return {
        "prediction of the run": lambda: served.compute(served.read([text])),
        "the same, by the thread of `elmo serve`": lambda: worker.submit(served, [text]).result(),
    }


def _requests(arguments: Namespace, words: list[str], servers: ExitStack) -> Ways:
    """Start a server for each way, and return what asks it over one connection."""
    text = " ".join(words)
    vectors = {"inputs": [text], "encoding_format": "base64"}
    ways: dict[str, Callable[[], object]] = {}
    for precision in get_args(Precision):
        connection = servers.enter_context(
            _server(arguments.threads, arguments.bilm, "--precision", precision)
        )
        ways[f"`elmo serve`, vectors, {precision}"] = partial(
            _answer, connection, "/embed", vectors
        )
    connection = servers.enter_context(_server(arguments.threads, str(arguments.run)))
    ask = partial(_answer, connection, "/predict", {"inputs": [text]})
    return {**ways, "`elmo serve`, prediction": ask}


@contextmanager
def _server(threads: int, *arguments: str) -> Iterator[http.client.HTTPConnection]:
    """Start `elmo serve`; yield a connection to it."""
    command = tied([*ELMO, "serve", *arguments, "--port", "0"])
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    with subprocess.Popen(
        command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout is not None
        port = next(int(match[1]) for line in process.stdout if (match := _URL.search(line)))
        connection = http.client.HTTPConnection("127.0.0.1", port)
        try:
            yield connection
        finally:
            connection.close()
            process.terminate()


def _answer(
    connection: http.client.HTTPConnection, path: str, request: Mapping[str, object]
) -> object:
    connection.request("POST", path, json.dumps(request), {"Content-Type": "application/json"})
    response = connection.getresponse()
    if response.status != _OK:
        raise SystemExit(f"status {response.status}: {response.read()!r}")
    return json.load(response)


def _medians(ways: Ways, repeats: int) -> dict[str, float]:
    """Return milliseconds; each way is repeated until its weights are in the cache of the CPU."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(_ROUNDS):
        for name, way in ways.items():
            for number in range(_WARM_UP + repeats // _ROUNDS):
                _, seconds = timed(way)
                if number >= _WARM_UP:
                    times[name].append(1000 * seconds)
    return {name: statistics.median(each) for name, each in times.items()}


def _arguments() -> Namespace:
    parser = ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--bilm", default="mini", help="the name or the folder of a biLM (mini)")
    parser.add_argument("--run", type=Path, required=True, help="of a tagger with that biLM")
    parser.add_argument("--words", type=int, default=20, help="of the sentence (20)")
    parser.add_argument("--repeats", type=int, default=60, help="of each way (60)")
    parser.add_argument("--threads", type=int, default=1, help="of torch (1)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
