"""Speed of two threads next to other programs that compute, by how long waiting threads spin.

    python benchmarks/busy.py --model mini --neighbors 2

Each row is the median of `--repeats` fresh processes, which take turns: one sentence, and sentences
in batches. `GOMP_SPINCOUNT` is what `elmo` sets, and the last row has one thread.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from children import tied
from measuring import say

_SETTINGS: Mapping[str, Mapping[str, str]] = {
    "two threads, default": {"OMP_NUM_THREADS": "2"},
    "two threads, 3000": {"OMP_NUM_THREADS": "2", "GOMP_SPINCOUNT": "3000"},
    "two threads, passive": {"OMP_NUM_THREADS": "2", "OMP_WAIT_POLICY": "PASSIVE"},
    "one thread": {"OMP_NUM_THREADS": "1"},
}
_NUM_DISTINCT = 3000
_NUM_SINGLE = 9


def main() -> int:
    """Measure all settings, or one in this process."""
    arguments = _arguments()
    if arguments.child:
        say(json.dumps(measure(arguments.model, arguments.n)))
        return 0
    say("| setting | neighbors | one sentence, ms | batches, tokens/s |")
    say("|---|---|---|---|")
    for number in (0, arguments.neighbors):
        with neighbors(number):
            rounds = [_round(arguments) for _ in range(arguments.repeats)]
        for name in _SETTINGS:
            one, many = (
                statistics.median(each[name][key] for each in rounds) for key in ("one", "many")
            )
            say(f"| {name} | {number} | {one:.1f} | {many:,.0f} |")
    return 0


def measure(model: str, num_sentences: int) -> dict[str, float]:
    """Return the milliseconds of one sentence, and the tokens per second of many."""
    from elmo_framework import load_bilm

    bilm = load_bilm(model, device="cpu")
    words = [f"word{number}" for number in range(_NUM_DISTINCT)]
    sentences = [
        [words[(17 * row + column) % _NUM_DISTINCT] for column in range(8 + row % 24)]
        for row in range(num_sentences)
    ]
    bilm.embed(sentences[:32])
    one = _seconds(lambda: bilm.embed([words[:20]]), _NUM_SINGLE)
    many = _seconds(lambda: bilm.embed(sentences), 3)
    return {"one": 1000 * one, "many": sum(map(len, sentences)) / many}


def _seconds(work: Callable[[], Any], times: int) -> float:
    durations = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        durations.append(time.perf_counter() - start)
    return statistics.median(durations)


def _round(arguments: Namespace) -> dict[str, dict[str, float]]:
    command = [sys.executable, __file__, "--child", "--model", arguments.model]
    command += ["--n", str(arguments.n)]
    return {
        name: json.loads(
            subprocess.run(
                command, check=True, capture_output=True, text=True, env={**os.environ, **setting}
            ).stdout
        )
        for name, setting in _SETTINGS.items()
    }


@contextmanager
def neighbors(number: int) -> Iterator[None]:
    """Run processes that compute without a pause."""
    command = tied([sys.executable, "-c", "while True: pass"])
    running = [subprocess.Popen(command) for _ in range(number)]
    try:
        yield
    finally:
        for process in running:
            process.terminate()
            process.wait()


def _arguments() -> Namespace:
    parser = ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--model", default="mini", help="the name or the folder of a biLM (mini)")
    parser.add_argument("--n", type=int, default=128, help="number of sentences (128)")
    parser.add_argument("--neighbors", type=int, default=2, help="busy processes (2)")
    parser.add_argument("--repeats", type=int, default=3, help="processes of each setting (3)")
    parser.add_argument("--child", action="store_true", help="measure in this process")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
