"""Send many requests at once to `elmo serve`, and good ones among bad ones; print the latencies.

elmo serve runs/ner --port 8000
python benchmarks/load_test.py http://127.0.0.1:8000 --text experiments/demo/test.txt
"""

from __future__ import annotations

import http.client
import json
import random
import time
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from measuring import say

JSON = {"Content-Type": "application/json"}
BAD = {
    "not JSON": (b'{"inputs": [', 400),
    "nested": (b"[" * 100_000, 400),
    "no inputs": (b"{}", 422),
    "a number": (b'{"inputs": [3]}', 422),
    "a surrogate": (b'{"inputs": ["\\ud800"]}', 422),
    "a long input": (json.dumps({"inputs": ["a " * 100_000]}).encode(), 413),
    "a huge body": (b"x" * 20_000_000, 413),
}


@dataclass(frozen=True)
class Answer:
    """The status of an answer, 0 if there was none; its predictions and its seconds."""

    status: int
    predictions: object
    seconds: float


def post(url: str, body: bytes) -> Answer:
    """Send a request on a connection of its own."""
    parts, since = urlsplit(url), time.perf_counter()
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=300)
    try:
        connection.request("POST", "/predict", body, JSON)
        response = connection.getresponse()
        status, content = response.status, json.load(response)
    except (OSError, ValueError) as error:
        return Answer(0, repr(error), time.perf_counter() - since)
    finally:
        connection.close()
    return Answer(status, content.get("predictions"), time.perf_counter() - since)


def sentences(path: Path) -> list[str]:
    """Return the sentences of a file of columns, or the lines of plain text."""
    blocks = path.read_text(encoding="utf-8").split("\n\n")
    if len(blocks) == 1:
        return path.read_text(encoding="utf-8").splitlines()
    rows = ([line.split() for line in block.splitlines()] for block in blocks)
    return [" ".join(row[0] for row in each if row) for each in rows if each]


def percentile(answers: Sequence[Answer], part: float) -> str:
    """Return the time within which a part of the answers came."""
    ordered = sorted(answer.seconds for answer in answers)
    return f"{1000 * ordered[min(len(ordered) - 1, int(part * len(ordered)))]:.0f} ms"


def main(argv: Sequence[str] | None = None) -> None:
    """Send the requests and print the report."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--number", type=int, default=1_000)
    parser.add_argument("--at-once", type=int, default=50)
    arguments = parser.parse_args(argv)
    texts = random.Random(0).choices(sentences(arguments.text), k=arguments.number)
    bodies = [json.dumps({"inputs": [text]}).encode() for text in texts]
    mixed = [(body, 200) for body in bodies[:100]] + [*BAD.values()] * 5

    def ask(body: bytes) -> Answer:
        return post(arguments.url, body)

    alone = [ask(body) for body in bodies[:20]]
    with ThreadPoolExecutor(arguments.at_once) as pool:
        since = time.perf_counter()
        answers = list(pool.map(ask, bodies))
        rate = len(answers) / (time.perf_counter() - since)
        among_bad = list(pool.map(ask, (body for body, _ in mixed)))
    pairs = zip(alone, answers, strict=False)
    same = sum(one.predictions == other.predictions for one, other in pairs)
    statuses = Counter(answer.status for answer in answers)
    expected = sum(
        answer.status == status for answer, (_, status) in zip(among_bad, mixed, strict=True)
    )
    say(f"{len(answers):,} requests, {arguments.at_once} at once: {rate:.1f} a second")
    say(f"answers by status: {dict(statuses)}; lost: {len(answers) - statuses[200]}")
    say(f"equal to those alone: {same} of {len(alone)}")
    for name, part in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("max", 1.0)):
        say(f"{name}: {percentile(answers, part)}; one after the other: {percentile(alone, part)}")
    say(f"good and bad requests together: {expected} of {len(mixed)} answered as expected")


if __name__ == "__main__":
    main()
