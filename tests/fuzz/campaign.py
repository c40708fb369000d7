"""Fuzz in processes of their own, so that a hang or a crash is a finding."""

from __future__ import annotations

import multiprocessing
import os
import resource
import sys
import tempfile
import time
import traceback
from argparse import ArgumentParser, Namespace
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from shutil import rmtree
from typing import Any, final

LONGEST_SECONDS = 20.0
"""A case that takes longer hangs."""
_SECONDS_TO_PREPARE = 300.0
_LARGEST_MEMORY = 12 * 2**30
_LONGEST_CAUSE = 300
_CONTEXT = multiprocessing.get_context("spawn")


@dataclass
class Result:
    """What a target's cases came to.

    Attributes:
        outcomes: how many cases were accepted, were refused with a message, or failed.
        failures: the numbers of the cases that failed, by what happened.
        slowest: the seconds of the slowest case, and its number.
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    failures: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    slowest: tuple[float, int] = (0.0, -1)


def main() -> int:
    """Fuzz, and print what was found; return 1 where anything failed."""
    options = _options()
    results = {name: _fuzz(name, options) for name in options.targets}
    for name, result in results.items():
        counts = ", ".join(f"{count:,} {what}" for what, count in sorted(result.outcomes.items()))
        seconds, slowest = result.slowest
        _say(f"{name}: {counts}; slowest {seconds:.1f} s (case {slowest})")
        for what, numbers in result.failures.items():
            _say(f"\n{what}\n  {len(numbers)} cases, such as {numbers[:5]}; repeat one with")
            first = f"--seed {options.seed} --first {numbers[0]} --number 1"
            _say(f"  python -m tests.fuzz {name} {first}\n")
    return int(any(result.failures for result in results.values()))


def _options() -> Namespace:
    from tests.fuzz.targets import TARGETS

    parser = ArgumentParser(prog="python -m tests.fuzz", description="Fuzz elmo_framework.")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--number", type=int, default=1000, help="of cases, for each target")
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    for name in options.targets:
        if name not in TARGETS:
            parser.error(f"unknown target {name!r}; choose from {', '.join(TARGETS)}")
    options.targets = options.targets or list(TARGETS)
    return options


def _fuzz(name: str, options: Namespace) -> Result:
    result, started = Result(), time.monotonic()
    numbers = iter(range(options.first, options.first + options.number))
    folder = Path(tempfile.mkdtemp(prefix=f"elmo-fuzz-{name}-"))

    def work(job: int) -> None:
        with Worker(name, folder / str(job), options.seed) as worker:
            for number in numbers:
                try:
                    outcome, detail, seconds = worker.attempt(number)
                except RuntimeError as error:  # what was found until now must not be lost
                    result.failures[f"after it, {error}"].append(number)
                    return
                result.outcomes[outcome] += 1
                result.slowest = max(result.slowest, (seconds, number))
                if outcome == "failed":
                    result.failures[detail].append(number)
                _report(name, sum(result.outcomes.values()), options.number, started)

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(work, range(options.jobs)))
    if untried := list(numbers):
        result.failures["not tried"] += untried
    rmtree(folder)
    return result


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _report(name: str, done: int, number: int, started: float) -> None:
    if done % 500 == 0:
        left = (time.monotonic() - started) * (number - done) / done
        _say(f"{name}: {done:,} of {number:,}, {left:.0f} seconds left")


@final
class Worker:
    """A process that tries cases; it is replaced where a case hangs or ends it.

    Args:
        name: of the target.
        folder: for its files.
        seed: of the cases.
    """

    def __init__(self, name: str, folder: Path, seed: int) -> None:
        self._arguments = name, folder, seed

    def __enter__(self) -> Worker:
        self._connection, theirs = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(target=_serve, args=(*self._arguments, theirs))
        self._process.start()
        theirs.close()
        if not self._connection.poll(_SECONDS_TO_PREPARE):
            raise RuntimeError("the target cannot be prepared")
        self._connection.recv()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.join()
        self._connection.close()

    def attempt(self, number: int) -> tuple[str, str, float]:
        """Try a case; return its outcome, what failed, and its seconds."""
        started = time.monotonic()
        self._connection.send(number)
        try:
            outcome, detail = (
                self._connection.recv()
                if self._connection.poll(LONGEST_SECONDS)
                else ("failed", f"hangs for more than {LONGEST_SECONDS:.0f} seconds")
            )
        except EOFError:
            self._process.join()
            outcome, detail = "failed", f"the process ended with code {self._process.exitcode}"
        if outcome == "failed" and not detail.startswith("Traceback"):
            self.__exit__()
            self.__enter__()
        return outcome, detail, time.monotonic() - started


def _serve(name: str, folder: Path, seed: int, connection: Connection[Any, Any]) -> None:
    """Try the cases whose numbers come, until the process is ended."""
    resource.setrlimit(resource.RLIMIT_AS, (_LARGEST_MEMORY, _LARGEST_MEMORY))
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["ELMO_CACHE_ROOT"] = str(folder / "cache")
    os.fsync = lambda descriptor: None
    from elmo_framework import components
    from tests.fuzz.targets import TARGETS

    components.load()
    target = TARGETS[name](folder)
    connection.send("ready")
    for number in _received(connection):
        connection.send(_outcome(target, number, seed))


def _received(connection: Connection[Any, Any]) -> Iterator[int]:
    while True:
        yield connection.recv()


def _outcome(target: Any, number: int, seed: int) -> tuple[str, str]:
    try:
        outcome = target.attempt(number, seed=seed)
    except BaseException:  # noqa: BLE001 - whatever a user would see
        return "failed", _where(traceback.format_exc())
    is_refused = outcome.startswith("2 ") or ": refused: " in outcome
    return ("refused" if is_refused else "accepted"), ""


def _where(report: str) -> str:
    """Shorten a traceback to what tells one cause from another."""
    lines = report.splitlines()
    places = [line.strip() for line in lines if line.lstrip().startswith("File ")]
    return "\n  ".join([lines[0], *places[-3:], lines[-1][:_LONGEST_CAUSE]])
