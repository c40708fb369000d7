"""One table of the biLMs of `experiments/pretrain/today`: what they learned, and what they cost.

    python benchmarks/today.py runs/today --study runs/today/tasks --exams exams --sentences TEXT

A row is a finished run in the folder, or several: NAME and NAME-SEED, whose values are averaged. So
are the variants of the study.
The perplexity and the training speed are those that a run has recorded. The speed is the median of
its records, so that a pause does not count; runs that are compared must still have had the same
processor and the same neighbours. Otherwise, train each config again for some updates, one after
the other in some rounds, as DIR/ROUND/NAME, and pass `--rates DIR`. The speed of embedding is
measured here, in one thread and in CPU time, which other work on the machine changes less. Columns
whose input is missing stay empty.
"""

from __future__ import annotations

import json
import re
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean, median, stdev

import torch
from exams import build_tokenizer, take
from measuring import Sentence, chosen_sentences, count_words, say

from elmo_framework import components, load_bilm

_NUM_SENTENCES = 2000
_CONFIGS = Path(__file__).parents[1] / "experiments/pretrain/today"
_TASKS = "tasks"
_SEED = re.compile(r"-\d+$")


def main() -> int:
    """Measure and print the table."""
    arguments = _arguments()
    torch.set_num_threads(1)
    components.load()
    finished = [path.parent for path in sorted(arguments.runs.glob("*/metrics.json"))]
    by_name = seeds_by_name(run for run in finished if (run / "bilm").is_dir())
    if not by_name:
        say(f"error: {arguments.runs}: no finished pretraining in it")
        return 2
    rows = [dict(_row(name, runs, arguments)) for name, runs in by_name.items()]
    say("\n".join(table([*rows, *missing(by_name)])))
    return 0


def table(rows: Iterable[Mapping[str, str]]) -> Iterator[str]:
    """Yield the lines of a Markdown table; a column is a key of any row."""
    rows = list(rows)
    names = list(dict.fromkeys(name for row in rows for name in row))
    yield f"| {' | '.join(names)} |"
    yield f"|{'---|' * len(names)}"
    for row in rows:
        yield f"| {' | '.join(row.get(name, '') for name in names)} |"


def missing(names: Iterable[str]) -> Iterator[dict[str, str]]:
    """Yield the rows of the configs of `experiments/pretrain/today` that were not run."""
    done = {*names, _TASKS}
    for config in sorted(_CONFIGS.glob("*.jsonnet")):
        if config.stem not in done:
            yield {"biLM": config.stem, "perplexity": "not run"}


def seeds_by_name(runs: Iterable[Path]) -> dict[str, list[Path]]:
    """Group the runs NAME, NAME-2, NAME-3, ... by their name."""
    by_name: dict[str, list[Path]] = {}
    for run in runs:
        by_name.setdefault(_SEED.sub("", run.name), []).append(run)
    return by_name


def with_spread(values: Sequence[float], decimals: int) -> str:
    """Show a mean, and the standard deviation of several values with their number."""
    shown = f"{mean(values):.{decimals}f}"
    if len(values) == 1:
        return shown
    return f"{shown} ± {stdev(values):.{decimals}f} ({len(values)} seeds)"


def tokens_per_second(runs: Iterable[Path]) -> float:
    """Return how many words and sentence ends runs read per second, in one direction: the median.

    A masked language model reads the rows of both directions, like a biLM, and predicts some words.
    """
    lines = (line for run in runs for line in (run / "steps.jsonl").read_text().splitlines())
    return median(json.loads(line)["tokens_per_second"] for line in lines)


def task_scores(study: Path, bilm: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the score of each task of a study with a biLM, from its records."""
    scores: dict[str, list[float]] = {}
    for path in sorted((study / "results").rglob("*.json")):
        record = json.loads(path.read_text())
        if _SEED.sub("", record["variant"]) == bilm:
            score = record["validation"][record["metric"].lstrip("+-")]
            scores.setdefault(record["config"], []).append(score)
    for task, values in scores.items():
        yield task, with_spread(values, 4)


def _row(name: str, runs: Sequence[Path], arguments: Namespace) -> Iterator[tuple[str, str]]:
    yield "biLM", name
    metrics = [json.loads((run / "metrics.json").read_text()) for run in runs]
    found = [each.get("best_validation_perplexity") for each in metrics]
    perplexities = [each for each in found if each is not None]
    yield "perplexity", with_spread(perplexities, 2) if perplexities else ""
    if arguments.exams and perplexities:
        results = [dict(_exams(run, arguments.exams)) for run in runs]
        for measure in results[0]:
            yield measure, with_spread([each[measure] for each in results], 3)
    if arguments.study:
        yield from task_scores(arguments.study, name)
    timed = runs if arguments.rates is None else sorted(arguments.rates.glob(f"*/{name}"))
    yield "training, tokens/s", f"{tokens_per_second(timed):,.0f}" if timed else ""
    if arguments.sentences:
        sentences = chosen_sentences(arguments.sentences, _NUM_SENTENCES)
        yield "embedding, tokens/s", f"{_embedding_speed(runs[0], sentences):,.0f}"


def _embedding_speed(run: Path, sentences: list[Sentence]) -> float:
    """Return words per second of CPU time; a first pass prepares the weights and the words."""
    bilm = load_bilm(run, device="cpu")
    bilm.embed(sentences)
    start = time.process_time()
    bilm.embed(sentences)
    return count_words(sentences) / (time.process_time() - start)


def _exams(run: Path, data: Path) -> Iterator[tuple[str, float]]:
    """Yield the measures of whole exams."""
    bilm = load_bilm(run, device="cpu")
    for result in take(bilm, data, build_tokenizer("spacy")):
        if not result.part:
            yield f"{result.exam}: {result.measure}", result.value


def _arguments() -> Namespace:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path, help="the folder of the runs")
    parser.add_argument("--study", type=Path, help="the folder of the study of the tasks")
    parser.add_argument("--rates", type=Path, help="the folder of short runs that are timed")
    parser.add_argument("--exams", type=Path, help="the folder of the exams")
    parser.add_argument("--sentences", type=Path, help="tokenized sentences to embed")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
