"""Milliseconds of one sentence, by each way to have it embedded, and through a server.

    python benchmarks/one_sentence.py --bilm mini --run runs/ner-mini

The words of the sentence are known after the first call, as most words of most sentences are. Each
row is a median; the ways take turns. `elmo serve` is measured twice: its worker alone, and a
request over HTTP on a connection that stays open. A prediction is the work of the biLM and of the
head of the task.
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
from contextlib import contextmanager
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
    with _server(arguments) as ask:
        ways = {**_embedding(arguments.bilm, words), **_serving(arguments.run, words), **ask(words)}
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
    worker = Worker(batch_size=32, max_waiting=32)
    text = " ".join(words)
    return {
        "prediction of the run": lambda: served.compute(served.read([text])),
        "`elmo serve`, without HTTP": lambda: worker.submit(served, [text]).result(),
    }


@contextmanager
def _server(arguments: Namespace) -> Iterator[Callable[[list[str]], Ways]]:
    """Start `elmo serve`, and give what asks it over one connection."""
    command = tied([*ELMO, "serve", str(arguments.run), "--port", "0"])
    environment = {**os.environ, "OMP_NUM_THREADS": str(arguments.threads)}
    with subprocess.Popen(
        command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout is not None
        port = next(int(match[1]) for line in process.stdout if (match := _URL.search(line)))
        connection = http.client.HTTPConnection("127.0.0.1", port)

        def ways(words: list[str]) -> Ways:
            body = json.dumps({"inputs": [" ".join(words)]})
            return {"`elmo serve`, with HTTP": lambda: _answer(connection, body)}

        try:
            yield ways
        finally:
            connection.close()
            process.terminate()


def _answer(connection: http.client.HTTPConnection, body: str) -> object:
    connection.request("POST", "/predict", body, {"Content-Type": "application/json"})
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
