"""The text that is measured on, and what is said of it: lines, of JSON for a measurement.

Nothing here imports the package or torch, so that `loading.py` can time their import.
"""

from __future__ import annotations

import json
import os
import platform
import random
import resource
import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TextIO, TypeVar

Sentence = Sequence[str]
T = TypeVar("T")

_SEED = 13
"""Of the choice of sentences; the scripts that measure others choose by the same."""


def add_text_arguments(parser: ArgumentParser, *, num_sentences: int) -> None:
    """Add the options of a measurement that reads a biLM and sentences.

    Args:
        parser: what they are added to.
        num_sentences: how many sentences are read unless told.
    """
    parser.add_argument("--model", type=Path, required=True, help="the folder of a biLM")
    parser.add_argument(
        "--sentences", type=Path, required=True, help="a tokenized sentence a line, words by spaces"
    )
    parser.add_argument(
        "--n", type=int, default=num_sentences, help=f"how many are read ({num_sentences})"
    )
    add_threads_argument(parser)


def add_threads_argument(parser: ArgumentParser) -> None:
    """Add the option that every measurement has."""
    parser.add_argument("--threads", type=int, default=2, help="of torch (2)")


def chosen_sentences(path: Path, number: int) -> list[Sentence]:
    """Read a file and return some of its sentences: always the same, in a mixed order."""
    lines = path.read_text(encoding="utf-8").splitlines()
    sentences: list[Sentence] = [words for line in lines if (words := line.split())]
    random.Random(_SEED).shuffle(sentences)
    return sentences[:number]


def in_batches(
    sentences: Sequence[Sentence], size: int, *, is_sorted: bool
) -> list[list[Sentence]]:
    """Cut sentences into batches, as they come or longest first."""
    ordered = sorted(sentences, key=len, reverse=True) if is_sorted else list(sentences)
    return [ordered[at : at + size] for at in range(0, len(ordered), size)]


def count_words(sentences: Sequence[Sentence]) -> int:
    """Return the number of words, neither padding nor boundaries among them."""
    return sum(map(len, sentences))


def timed(function: Callable[[], T]) -> tuple[T, float]:
    """Return what a function gives and how many seconds it took."""
    started = time.perf_counter()
    return function(), time.perf_counter() - started


def update_times(updates: Sequence[Callable[[], object]]) -> dict[str, list[float]]:
    """Return the milliseconds of each update, made once before: on the processor, by the clock."""
    for update in updates:
        update()
    times: dict[str, list[float]] = {"processor_ms": [], "clock_ms": []}
    for update in updates:
        began, began_work = time.perf_counter(), time.process_time()
        update()
        times["processor_ms"].append(_milliseconds(time.process_time() - began_work))
        times["clock_ms"].append(_milliseconds(time.perf_counter() - began))
    return times


def peak_rss_mib() -> float:
    """Return the most memory that this process has held so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (1 << (20 if platform.system() == "Darwin" else 10)), 1)


def report(**figures: Any) -> None:
    """Print what was measured as one line of JSON.

    Figures end in what they are: `_per_s`, `_s`, `_ms`, `_mib`. `rows` holds one object a
    configuration, with its name as `config`.
    """
    line = {
        "peak_rss_mib": peak_rss_mib(),
        "python": platform.python_version(),
        "load1": os.getloadavg()[0],
        **figures,
    }
    say(json.dumps(line))


def time_work(model: Any) -> None:
    """Do what each line of the input asks for; write the seconds of the CPU and of the clock.

    Args:
        model: has the methods that are asked for, which take the number of a batch.
    """
    for line in sys.stdin:
        question = json.loads(line)
        began, began_work = time.perf_counter(), time.process_time()
        getattr(model, question["work"])(question["batch"])
        say(json.dumps([time.process_time() - began_work, time.perf_counter() - began]))


def say(text: str, file: TextIO | None = None) -> None:
    """Print at once, to a file or else to the standard output."""
    print(text, file=file, flush=True)


def _milliseconds(seconds: float) -> float:
    return round(seconds * 1000, 1)
