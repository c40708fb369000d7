"""Rate of `elmo embed --output-dir` next to `bilm.embed`, and the cost of up to 10^9 sentences.

    python benchmarks/embedding_cost.py TEXT --bilms mini original

`original` and the other published sizes have random weights. `bilm.embed` and the job of the
command read the same sentences in one process, in turn, and both encode all words anew. They make
batches of the same size from sentences that are sorted by length: all sentences together in
`bilm.embed`, those of a shard in the job.

The start of a job is not part of its rate. It is measured with a job whose shards exist.

The table of costs follows from the rate of one process, its largest memory (of the command, in a
new process), the bytes of its shards, and the speed of the disk. Rates are for one thread.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import final

import torch
from measuring import Sentence, chosen_sentences, count_words, say, timed
from published_sizes import SIZES, write_random_bilm
from usage import ELMO, run, size_mib

from elmo_framework import load_bilm
from elmo_framework.api.encoder import PretrainedEncoder
from elmo_framework.embedding.embed import embed
from elmo_framework.embedding.job import EmbeddingJob
from elmo_framework.io.process import keep_freed_memory, limit_compiled_products

_WORDS = 20
"""Of a sentence in the table of costs."""

_COUNTS = (10**6, 10**7, 10**8, 10**9)
_EXACT = 10
"""Numbers below have a decimal."""

_UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"))
_TIMES = ((86400, "days"), (3600, "hours"), (60, "minutes"), (1, "seconds"))


@final
@dataclass(frozen=True)
class Rates:
    """Measurements of one biLM with one thread.

    Attributes:
        name: of the biLM.
        api: tokens per second of `bilm.embed`.
        job: tokens per second of the job, once it has started.
        ratios: the second to the first, of each round.
        start: the seconds until a job computes.
        mib: the largest memory of the command.
        vector_bytes: the size of a shard per sentence, one vector each.
        word_bytes: the size of all layers of a word in float16.
    """

    name: str
    api: float
    job: float
    ratios: Sequence[float]
    start: float
    mib: float
    vector_bytes: float
    word_bytes: int


def main() -> int:
    """Measure, and print both tables."""
    arguments = _arguments()
    torch.set_num_threads(1)
    keep_freed_memory()
    limit_compiled_products()
    with tempfile.TemporaryDirectory(dir=arguments.folder, prefix="cost-") as name:
        folder = Path(name)
        measured = [
            _measured(bilm, chosen_sentences(arguments.text, number), folder, arguments.repeats)
            for bilm, number in zip(arguments.bilms, arguments.n, strict=True)
        ]
        disk = _disk_rate(folder)
    say(rate_table(measured))
    say(cost_table(measured, disk))
    return 0


def rate_table(measured: Sequence[Rates]) -> str:
    """Compare the job with `bilm.embed`."""
    rows = [
        f"| {each.name} | {each.api:,.0f} | {each.job:,.0f} "
        f"| {100 * statistics.median(each.ratios):.1f} % "
        f"({100 * min(each.ratios):.1f} to {100 * max(each.ratios):.1f}) | {each.start:.2f} s |"
        for each in measured
    ]
    head = "| biLM | `bilm.embed`, tokens/s | `elmo embed`, tokens/s | ratio | start |"
    return "\n".join([head, "|---|---|---|---|---|", *rows, ""])


def cost_table(measured: Sequence[Rates], disk: float) -> str:
    """Return time, memory and disk by the number of sentences.

    Args:
        measured: the biLMs.
        disk: bytes per second that it writes.
    """
    lines = [
        f"Sentences of {_WORDS} words; the disk writes {disk / 1e6:,.0f} MB/s.\n",
        "| biLM | sentences | one core | 64 cores | memory of a process | disk, one vector "
        "per sentence | disk, all layers | cores whose vectors fill the disk: one, all |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for each in measured:
        sentences_per_s = each.job / _WORDS
        sizes = each.vector_bytes, _WORDS * each.word_bytes
        limits = " / ".join(f"{disk / (sentences_per_s * size):,.0f}" for size in sizes)
        for count in _COUNTS:
            seconds = count / sentences_per_s
            cells = [
                each.name,
                f"{count:,}",
                _in_units(seconds, _TIMES),
                _in_units(seconds / 64, _TIMES),
                f"{each.mib:,.0f} MiB",
                *(_in_units(count * size, _UNITS) for size in sizes),
                limits,
            ]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _measured(bilm: str, sentences: Sequence[Sentence], folder: Path, repeats: int) -> Rates:
    path = bilm
    if bilm in SIZES:
        path = str(folder / bilm)
        write_random_bilm(bilm, Path(path))
    text = folder / "sentences.txt"
    text.write_text("".join(" ".join(words) + "\n" for words in sentences), encoding="utf-8")
    encoder = load_bilm(path, device="cpu")
    encoder.embed(sentences[:64])
    rounds = [
        _round(encoder, sentences, _job(path, text, folder / f"{bilm}-{number}"))
        for number in range(repeats)
    ]
    api, job, start = (statistics.median(column) for column in zip(*rounds, strict=True))
    output = folder / f"{bilm}-command"
    flags = ["--output-dir", str(output), "--layers", "top", "--pool", "mean"]
    usage = run([*ELMO, "embed", path, str(text), *flags, "--dtype", "float16"])
    tokens = count_words(sentences)
    return Rates(
        name=bilm,
        api=tokens / api,
        job=tokens / job,
        ratios=[one / other for one, other, _ in rounds],
        start=start,
        mib=usage.mib,
        vector_bytes=size_mib(output) * (1 << 20) / len(sentences),
        word_bytes=2 * encoder.num_layers * encoder.dim,
    )


def _job(bilm: str, text: Path, output: Path) -> EmbeddingJob:
    options = {"layers": "top", "pool": "mean", "dtype": "float16", "format": "npy"}
    return EmbeddingJob(bilm, [text], output_dir=output, device="cpu", **options)


def _round(
    encoder: PretrainedEncoder, sentences: Sequence[Sentence], job: EmbeddingJob
) -> tuple[float, float, float]:
    """Return the seconds of `bilm.embed`, of the job without its start, and of its start."""
    encoder.source.forget_words()
    _, api = timed(lambda: encoder.embed(sentences))
    with redirect_stderr(StringIO()):
        _, whole = timed(lambda: embed(job))
        _, start = timed(lambda: embed(job))
    return api, whole - start, start


def _disk_rate(folder: Path) -> float:
    """Return the bytes per second that are written to a folder, until they are on the disk."""
    block, number = os.urandom(1 << 22), 64
    start = time.perf_counter()
    with (folder / "bytes").open("wb") as file:
        for _ in range(number):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
    return number * len(block) / (time.perf_counter() - start)


def _in_units(value: float, units: Sequence[tuple[float, str]]) -> str:
    size, name = next((unit for unit in units if value >= unit[0]), units[-1])
    number = value / size
    return f"{number:,.0f} {name}" if number >= _EXACT else f"{number:.1f} {name}"


def _arguments() -> Namespace:
    parser = ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("text", metavar="TEXT", type=Path, help="one tokenized sentence per line")
    parser.add_argument("--bilms", nargs="+", default=["mini", "original"], help="names or folders")
    parser.add_argument(
        "--n", type=int, nargs="+", default=[6000, 400], help="sentences of each (6000 400)"
    )
    parser.add_argument("--repeats", type=int, default=3, help="rounds of each (3)")
    parser.add_argument("--folder", type=Path, help="for results; its disk is measured")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
